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
  /** Signs a browser in, once; undefined when it could not be made. */
  readonly signInLink: string | undefined;
  readonly secretsFile: string;
  /** To ask the gateway which models it has; never shown. */
  readonly masterKey: string;
  readonly gatewayReady: boolean;
  readonly tookMs: number;
  readonly runners: readonly FoundRunner[];
  /** How to stop it. */
  readonly stopWith: string;
}

/** What a newcomer needs next: where everything is, a key, a first call, the models, the next commands. */
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
  const { addresses } = steps;
  const usable = models.filter(({ pending }) => !pending).map(({ id }) => id);
  const local = usable.find((id) =>
    steps.runners.some((runner) => runner.models.includes(id)),
  );
  const first = local ?? usable.find((id) => id === ECHO_ALIAS) ?? usable[0];
  const verdict = steps.gatewayReady
    ? paint("ok", `Hearth is up in ${inWords(steps.tookMs)}.`)
    : paint(
        "warn",
        `Hearth is up in ${inWords(steps.tookMs)}, but the gateway cannot serve calls yet: \`hearth status\` says why.`,
      );
  const places = alignColumns([
    [
      { text: "  gateway", tone: "strong" },
      { text: `${addresses.gateway}/v1`, tone: "ember" },
      { text: "for anything that speaks OpenAI", tone: "soft" },
    ],
    [
      { text: "  notes", tone: "strong" },
      { text: addresses.notes, tone: "ember" },
      { text: "for Obsidian's Self-hosted LiveSync", tone: "soft" },
    ],
    [
      { text: "  supervisor", tone: "strong" },
      { text: addresses.supervisor, tone: "ember" },
      { text: "the state of everything, in a browser", tone: "soft" },
    ],
  ]);
  return [
    "",
    verdict,
    "",
    ...places,
    "",
    ...signInLines(steps.signInLink),
    `The master key lies in ${paint("strong", asTyped(steps.secretsFile))} (masterKey; only you can read the file).`,
    "",
    "1. Make a key that may spend 1 $:",
    "",
    ...makeKeyCommand(steps),
    "",
    ...(first === undefined
      ? ["2. Chat: no model can be called yet, see below."]
      : [
          `2. Chat with ${first === ECHO_ALIAS ? `${ECHO_ALIAS}, which only repeats what it is told` : first}:`,
          "",
          ...chatCommand(addresses.gateway, "$KEY", first).map(
            (line) => `  ${line}`,
          ),
        ]),
    "",
    "3. Connect a device to your notes (the plugin Self-hosted LiveSync reads its Setup URI):",
    "",
    "  npx hearth notes setup-uri notes",
    "",
    ...modelLines(usable, models, steps.runners),
    "",
    `Next: ${["hearth status", "hearth logs gateway", "hearth models discover", "hearth --help"].map((command) => paint("strong", `npx ${command}`)).join(" · ")}`,
    `Stop: ${paint("strong", steps.stopWith)}`,
    "",
  ].join("\n");
}

function signInLines(link: string | undefined): readonly string[] {
  const command = paint("strong", "npx hearth open");
  return link === undefined
    ? [`To open the status page in a browser: ${command} prints a link.`, ""]
    : [
        `Open the status page; this link signs one browser in, within ${LINK_MINUTES} minutes (${command} prints another):`,
        "",
        `  ${paint("ember", link)}`,
        "",
      ];
}

/** The master key goes from the file through a pipe into curl: it is in no argument and on no screen. */
export function makeKeyCommand(
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
    `Models that answer: ${usable.length === 0 ? "none yet" : usable.join(", ")}${pending === 0 ? "" : paint("soft", `; ${pending} more wait for their key or address (config/gateway.yaml says which)`)}`,
    ...unknown.map(
      ({ runner, fresh }) =>
        `Found ${runner.name} at ${runner.address} with ${fresh.length} more: ${paint("strong", "npx hearth models discover")} adds ${fresh.slice(0, 3).join(", ")}${fresh.length > 3 ? " …" : ""}`,
    ),
    ...(runners.length === 0
      ? [
          paint(
            "soft",
            "No local runner was found (Ollama, LM Studio, llama.cpp, vLLM): start one, then run `npx hearth models discover`.",
          ),
        ]
      : []),
  ];
}
