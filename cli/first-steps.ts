import type { FoundRunner } from "../embedded/discovery/runners.ts";
import { inWords } from "../core/duration.ts";
import { ECHO_ALIAS } from "../embedded/echo.ts";
import { asTyped } from "../supervisor/home/home.ts";
import { openAdminApi } from "../supervisor/gateway/admin-api.ts";
import {
  chatCommand,
  listModels,
  type Model,
} from "../supervisor/gateway/first-call.ts";
import { LINK_MINUTES } from "../console/http/sign-in-links.ts";
import { alignColumns, paint } from "./terminal.ts";

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
  /** How to stop it. */
  readonly stopWith: string;
}

/** The next steps after a first start: addresses, a key, a first call, the models, further commands. */
export async function findFirstSteps(steps: FirstSteps): Promise<string> {
  const models = await listModels(
    openAdminApi({
      address: steps.addresses.gateway,
      credential: () => steps.masterKey,
      timeoutMs: 3000,
    }),
  ).catch(() => []);
  return describeFirstSteps(steps, models);
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
    "1. Create a key with a budget of 1 $:",
    "",
    ...createKeyCommand(steps),
    "",
    ...chatLines(steps, usable),
    "",
    "3. Connect a device to your notes (the plugin Self-hosted LiveSync reads its Setup URI):",
    "",
    "  npx hearth notes setup-uri notes",
    "",
    ...modelLines(usable, models, steps.runners),
    "",
    `Next: ${commands.map((command) => paint("strong", `npx ${command}`)).join(" · ")}`,
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
  { addresses, runners }: FirstSteps,
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
    ...chatCommand(addresses.gateway, "$KEY", model).map((line) => `  ${line}`),
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

/** The master key is piped from the file into curl, so it appears neither in arguments nor on the screen. */
export function createKeyCommand(
  steps: Pick<FirstSteps, "addresses" | "secretsFile">,
): readonly string[] {
  const file = asTyped(steps.secretsFile).replace(/^.*[^\w./-].*$/, "'$&'");
  return [
    `  KEY=$(sed -n 's/.*"masterKey": "\\(.*\\)".*/Authorization: Bearer \\1/p' ${file} |`,
    `    curl -sS ${steps.addresses.gateway}/key/generate -H @- -H 'content-type: application/json' \\`,
    `      -d '{"user_id":"me","max_budget":1}' | sed -n 's/.*"key": *"\\(sk-[^"]*\\)".*/\\1/p'); echo "$KEY"`,
  ];
}

function modelLines(
  usable: readonly string[],
  models: readonly Model[],
  runners: readonly FoundRunner[],
): readonly string[] {
  const unknown = runners
    .map((runner) => ({
      runner,
      fresh: runner.models.filter((model) => !usable.includes(model)),
    }))
    .filter(({ fresh }) => fresh.length > 0);
  const pending = models.filter((model) => model.pending).length;
  return [
    `Available models: ${usable.length === 0 ? "none yet" : usable.join(", ")}${pending === 0 ? "" : paint("soft", `; ${pending} ${pending === 1 ? "model needs" : "models need"} an API key or address: \`npx hearth models list\` names them, \`npx hearth models key openai\` stores a key`)}`,
    ...unknown.map(
      ({ runner, fresh }) =>
        `Found ${runner.name} at ${runner.address} with ${fresh.length} new ${fresh.length === 1 ? "model" : "models"} (${fresh.slice(0, 3).join(", ")}${fresh.length > 3 ? ", …" : ""}): run ${paint("strong", "npx hearth models discover")} to add ${fresh.length === 1 ? "it" : "them"}`,
    ),
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
