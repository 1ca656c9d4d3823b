import type { FoundRunner } from "../supervisor/gateway/find-runners.ts";
import { inWords } from "../core/duration.ts";
import { ECHO_ALIAS } from "../embedded/echo.ts";
import { asTyped } from "../supervisor/home/home.ts";
import { openAdminApi } from "../supervisor/gateway/admin-api.ts";
import { listModels, type Model } from "../supervisor/gateway/first-call.ts";
import { LINK_MINUTES } from "../console/http/sign-in-links.ts";
import { alignColumns, paint } from "./terminal.ts";
import { counted } from "../core/words.ts";

export interface FirstSteps {
  readonly addresses: {
    readonly gateway: string;
    readonly notes: string;
    readonly supervisor: string;
  };
  /** Signs one browser in, once; undefined when it could not be created. */
  readonly signInLink: string | undefined;
  readonly secretsFile: string;
  /** For listing the gateway's models; never displayed. */
  readonly masterKey: string;
  readonly gatewayReady: boolean;
  readonly tookMs: number;
  readonly runners: readonly FoundRunner[];
  /** Sentences about the gateway's configuration. */
  readonly configWarnings: readonly string[];
  /** How to stop it. */
  readonly stopWith: string;
  /** Whether this is the first start: later ones are described briefly. */
  readonly isFirst: boolean;
  readonly json: boolean;
}

/** What `up` prints: the addresses, and after a first start also the next steps. */
export async function findFirstSteps(steps: FirstSteps): Promise<string> {
  const models = await listModels(
    openAdminApi({
      address: steps.addresses.gateway,
      credential: () => steps.masterKey,
      timeoutMs: 3000,
    }),
  ).catch(() => []);
  if (steps.json) {
    return JSON.stringify(asJson(steps, models), null, 2);
  }
  return steps.isFirst
    ? describeFirstSteps(steps, models)
    : describeLaterStart(steps, models);
}

function asJson(
  { addresses, signInLink, secretsFile, gatewayReady, ...steps }: FirstSteps,
  models: readonly Model[],
) {
  return {
    alreadyRunning: false,
    firstStart: steps.isFirst,
    addresses,
    signInLink: signInLink ?? null,
    secretsFile,
    gatewayReady,
    tookMs: Math.round(steps.tookMs),
    models,
    runners: steps.runners,
    configWarnings: steps.configWarnings,
  };
}

/** The JSON of a start that found a running Hearth. */
export function alreadyRunning(message: string): string {
  return JSON.stringify({ alreadyRunning: true, message }, null, 2);
}

/** Where everything is, for those who know it. */
export function describeLaterStart(
  steps: FirstSteps,
  models: readonly Model[],
): string {
  const usable = models.filter(({ pending }) => !pending).map(({ id }) => id);
  return [
    "",
    verdict(steps),
    "",
    ...addressLines(steps.addresses),
    "",
    ...signInLines(steps.signInLink),
    ...newModelLines(usable, steps.runners),
    ...warningLines(steps.configWarnings),
    nextLine(["hearth status", "hearth keys new", "hearth --help"]),
    `Stop: ${paint("strong", steps.stopWith)}`,
    "",
  ].join("\n");
}

function warningLines(warnings: readonly string[]): readonly string[] {
  return warnings.length === 0
    ? []
    : [
        paint(
          "warn",
          `The gateway's configuration has ${counted(warnings.length, "warning")}: run \`npx hearth config --check\` to read ${warnings.length === 1 ? "it" : "them"}.`,
        ),
      ];
}

function nextLine(commands: readonly string[]): string {
  return `Next: ${commands.map((command) => paint("strong", `npx ${command}`)).join(" · ")}`;
}

export function describeFirstSteps(
  steps: FirstSteps,
  models: readonly Model[],
): string {
  const usable = models.filter(({ pending }) => !pending).map(({ id }) => id);
  const commands = [
    "hearth status",
    "hearth logs gateway",
    "hearth models discover",
    "hearth --help",
  ];
  return [
    "",
    verdict(steps),
    "",
    ...addressLines(steps.addresses),
    "",
    ...signInLines(steps.signInLink),
    `Master key: ${paint("strong", asTyped(steps.secretsFile))} (masterKey; readable only by you).`,
    "",
    "1. Create a key with a budget of $ 1 (shown once, with a call that tries it):",
    "",
    "  npx hearth keys new --user me --budget 1",
    "",
    ...chatLines(steps, usable),
    "",
    "3. Connect a device to your notes (the plugin Self-hosted LiveSync reads its Setup URI):",
    "",
    "  npx hearth notes setup-uri notes",
    "",
    ...modelLines(usable, models, steps.runners),
    ...warningLines(steps.configWarnings),
    "",
    nextLine(commands),
    `Stop: ${paint("strong", steps.stopWith)}`,
    "",
  ].join("\n");
}

function verdict({ gatewayReady, tookMs }: FirstSteps): string {
  const text = `Hearth is up after ${inWords(tookMs)}`;
  return gatewayReady
    ? paint("ok", `${text}.`)
    : paint(
        "warn",
        `${text}, but the gateway cannot serve calls yet. Run \`hearth status\` for the reason.`,
      );
}

function addressLines(addresses: FirstSteps["addresses"]): readonly string[] {
  const rows = [
    ["gateway", `${addresses.gateway}/v1`, "for OpenAI-compatible clients"],
    ["notes", addresses.notes, "for Obsidian's Self-hosted LiveSync"],
    ["supervisor", addresses.supervisor, "status page for the browser"],
  ] as const;
  return alignColumns(
    rows.map(([name, address, use]) => [
      { text: `  ${name}`, tone: "strong" },
      { text: address, tone: "ember" },
      { text: use, tone: "soft" },
    ]),
  );
}

/** A first call: preferably to a local model, else to the echo. */
function chatLines(
  { runners }: FirstSteps,
  usable: readonly string[],
): readonly string[] {
  const local = usable.find((id) =>
    runners.some((runner) => runner.models.includes(id)),
  );
  const model = local ?? usable.find((id) => id === ECHO_ALIAS) ?? usable[0];
  if (model === undefined) {
    return ["2. Chat: no model is available yet (see below)."];
  }
  const name =
    model === ECHO_ALIAS ? `${ECHO_ALIAS}, which repeats its input` : model;
  return [
    `2. Chat with ${name}:`,
    "",
    `  npx hearth chat ${model} "Hello, Hearth"`,
  ];
}

function signInLines(link: string | undefined): readonly string[] {
  const command = paint("strong", "npx hearth open");
  return link === undefined
    ? [`To open the status page in a browser, run ${command} for a link.`, ""]
    : [
        `Status page (the link signs in one browser within ${LINK_MINUTES} minutes; run ${command} for another):`,
        "",
        `  ${paint("ember", link)}`,
        "",
      ];
}

function modelLines(
  usable: readonly string[],
  models: readonly Model[],
  runners: readonly FoundRunner[],
): readonly string[] {
  const pending = models.filter((model) => model.pending).length;
  return [
    `Available models: ${usable.length === 0 ? "none yet" : usable.join(", ")}${pending === 0 ? "" : paint("soft", `; ${counted(pending, "model needs", "models need")} an API key or address: \`npx hearth models list\` names them, \`npx hearth models key openai\` stores a key`)}`,
    ...newModelLines(usable, runners),
    ...(runners.length === 0
      ? [
          paint(
            "soft",
            "No local runner found (Ollama, LM Studio, llama.cpp, vLLM): start one, then run `npx hearth models discover`.",
          ),
        ]
      : []),
  ];
}

/** Models of local runners that the gateway does not have yet. */
function newModelLines(
  usable: readonly string[],
  runners: readonly FoundRunner[],
): readonly string[] {
  return runners.flatMap(({ name, address, models }) => {
    const fresh = models.filter((model) => !usable.includes(model));
    return fresh.length === 0
      ? []
      : [
          `Found ${name} at ${address} with ${counted(fresh.length, "new model")} (${fresh.slice(0, 3).join(", ")}${fresh.length > 3 ? ", …" : ""}): run ${paint("strong", "npx hearth models discover")} to add ${fresh.length === 1 ? "it" : "them"}`,
        ];
  });
}
