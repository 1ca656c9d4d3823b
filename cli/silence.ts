import type { Silence } from "../supervisor/alerts/silence.ts";
import { inZone } from "./local-time.ts";
import { timedArgs, listActive, readTimedRequest } from "./timed-request.ts";
import { findStack, type StackClient } from "./stack-client.ts";
import { printAnswer } from "./terminal.ts";
import { defineVerb, type ExitCode } from "./verb.ts";

export const silence = defineVerb({
  name: "silence",
  description: "Suspend notifications of an alarm; it stays visible.",
  example: 'hearth silence gateway 2h --why "new memory"',
  args: {
    name: {
      type: "positional",
      required: false,
      description: "Subject or fingerprint of the alarm; * matches anything",
    },
    ...timedArgs,
    list: { type: "boolean", description: "List active silences" },
    end: {
      type: "string",
      description: "End a silence early",
      valueHint: "name or id",
    },
  },
  run: async ({ name, duration, why, list, end, json, url }) => {
    if (end !== undefined) {
      return endOne(findStack(url), end, json);
    }
    if (list) {
      return show(findStack(url), json);
    }
    const wanted = readTimedRequest(
      { name, duration, why },
      '`hearth silence` requires a name, a duration and --why, for example: hearth silence gateway 2h --why "new memory"',
    );
    const created = (await findStack(url).ask(
      "POST",
      "/api/silences",
      undefined,
      {
        pattern: wanted.name,
        for: wanted.duration,
        why: wanted.why,
      },
    )) as Silence;
    printAnswer(
      json,
      created,
      `${created.pattern} silenced until ${inZone(created.until)}. End it early with \`hearth silence --end ${created.id}\`.`,
    );
    return 0;
  },
});

async function show(
  stack: StackClient,
  json: boolean | undefined,
): Promise<ExitCode> {
  const { silences } = (await stack.ask("GET", "/api/silences")) as {
    readonly silences: readonly Silence[];
  };
  return listActive(
    json,
    silences,
    "name",
    ({ pattern }) => pattern,
    "No active silences.",
  );
}

async function endOne(
  stack: StackClient,
  idOrName: string,
  json: boolean | undefined,
): Promise<ExitCode> {
  const { ended } = (await stack.ask(
    "DELETE",
    `/api/silences/${encodeURIComponent(idOrName)}`,
  )) as { readonly ended: readonly Silence[] };
  printAnswer(
    json,
    ended,
    `Silence ended: ${ended.map(({ pattern }) => pattern).join(", ")}.`,
  );
  return 0;
}
