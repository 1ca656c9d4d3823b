import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { askHttp } from "../supervisor/checks/http-get.ts";
import { addModels, type Written } from "../embedded/discovery/local-config.ts";
import {
  findRunners,
  USUAL_PLACES,
  type FoundRunner,
} from "../supervisor/gateway/find-runners.ts";
import { asTyped, locateHome, operatorFile } from "../supervisor/home/home.ts";
import { readSecretsFile } from "../supervisor/home/secrets.ts";
import {
  aliveIn,
  readRunFile,
} from "../supervisor/runtimes/process/run-file.ts";
import { alignColumns, paint, printAnswer } from "./terminal.ts";
import { defineVerb, jsonArg } from "./verb.ts";
import { counted } from "../core/words.ts";

export const discover = defineVerb({
  name: "models discover",
  description:
    "Find models of local runners and add them to config/gateway.local.yaml.",
  example: "hearth models discover --url http://192.168.1.10:11434",
  args: {
    url: {
      type: "string",
      description: "Address of another runner; several separated by commas",
      valueHint: "address",
    },
    file: {
      type: "string",
      description: "File to write (default: your gateway.local.yaml)",
      valueHint: "path",
    },
    ...jsonArg,
  },
  run: async ({ url, file: given, json }) => {
    const file = given ?? operatorFile(locateHome(), "gateway.local.yaml");
    mkdirSync(dirname(file), { recursive: true });
    const urls = (url ?? "").split(",").filter((each) => each !== "");
    const runners = await findRunners(process.env, urls);
    const written = addModels(file, runners);
    const reloaded =
      written.added.length > 0 ? await reloadGateway() : "not needed";
    printAnswer(
      json,
      { runners, ...written, file, reloaded },
      runners.length === 0
        ? nothingFound(urls)
        : describe(runners, written, file, reloaded),
    );
    return runners.length > 0 ? 0 : 1;
  },
});

type Reloaded = "yes" | "not running" | "failed" | "not needed";

/** With what was tried, addresses of --url first. */
export function nothingFound(urls: readonly string[]): string {
  const tried = [...urls, ...USUAL_PLACES];
  return `No local runner found (tried ${tried.join(", ")}): start one, or set its address with --url.`;
}

function describe(
  runners: readonly FoundRunner[],
  { added, known }: Written,
  file: string,
  reloaded: Reloaded,
): string {
  const addedNames = new Set(
    added.map(
      (entry) => `${entry.provider_params.api_base} ${entry.model_name}`,
    ),
  );
  const rows = runners.flatMap((runner) =>
    runner.models.map((model) => [
      addedNames.has(`${runner.apiBase} ${model}`)
        ? ({ text: "+ added", tone: "ok" } as const)
        : ({ text: "= known", tone: "soft" } as const),
      { text: model, tone: "strong" } as const,
      { text: runner.name },
      { text: runner.address, tone: "soft" } as const,
    ]),
  );
  return [
    added.length === 0
      ? `No new models: all ${known.length} are already in ${asTyped(file)}.`
      : `${counted(added.length, "model")} added to ${asTyped(file)}.`,
    "",
    ...alignColumns(rows),
    ...runnersWithoutModels(runners),
    ...nextSteps(reloaded),
  ].join("\n");
}

function runnersWithoutModels(
  runners: readonly FoundRunner[],
): readonly string[] {
  return runners
    .filter((runner) => runner.models.length === 0)
    .map(
      (runner) =>
        `${runner.name} at ${runner.address} is running but has no models yet.`,
    );
}

function nextSteps(reloaded: Reloaded): readonly string[] {
  const alone = process.env["HEARTH_GATEWAY_CONFIG"];
  if (alone !== undefined && alone !== "") {
    return [
      "",
      paint(
        "warn",
        `HEARTH_GATEWAY_CONFIG is set to ${alone}, which replaces all other files: copy the new entries there.`,
      ),
    ];
  }
  switch (reloaded) {
    case "yes":
      return ["", "The running gateway has loaded them."];
    case "failed":
      return [
        "",
        "The running gateway has not loaded them yet. Run `hearth restart gateway`.",
      ];
    case "not running":
      return ["", "Run `hearth up` to start the gateway with them."];
    case "not needed":
      return [];
  }
}

/** Reloads the files of the gateway started here by `hearth up`. */
async function reloadGateway(): Promise<Reloaded> {
  const home = locateHome();
  const gateway = aliveIn(readRunFile(home.runFile).services["gateway"]);
  if (gateway === undefined) {
    return "not running";
  }
  const answer = await askHttp(`${gateway.address}/config/reload`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${readSecretsFile(home)?.masterKey ?? ""}`,
      "content-type": "application/json",
    },
    body: "{}",
    signal: AbortSignal.timeout(10_000),
  }).catch(() => undefined);
  return answer?.status === 200 ? "yes" : "failed";
}
