import type { Silence } from "../supervisor/alerts/silence.ts";
import { forAWhileArgs, listInForce, readWanted } from "./for-a-while.ts";
import { findStack, type StackClient } from "./stack-client.ts";
import { print } from "./terminal.ts";
import { defineVerb, type ExitCode } from "./verb.ts";

export const silence = defineVerb({
  name: "silence",
  description: "Tell nobody of an alarm for a while; it stays visible.",
  example: 'hearth silence gateway 2h --why "new memory"',
  args: {
    name: {
      type: "positional",
      required: false,
      description:
        "What the alarm is about, or its fingerprint; * stands for anything",
    },
    ...forAWhileArgs,
    list: { type: "boolean", description: "Show the silences in force" },
    end: {
      type: "string",
      description: "End one before its time",
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
    const wanted = readWanted(
      { name, duration, why },
      '`hearth silence` needs a name, how long, and --why, for example: hearth silence gateway 2h --why "new memory"',
    );
    const made = (await findStack(url).ask("POST", "/api/silences", undefined, {
      pattern: wanted.name,
      for: wanted.duration,
      why: wanted.why,
    })) as Silence;
    print(
      json
        ? JSON.stringify(made, null, 2)
        : `Nobody is told of ${made.pattern} until ${clockOf(made.until)}; \`hearth silence --end ${made.id}\` ends it before.`,
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
  if (!json) {
    return listInForce(
      silences,
      "name",
      ({ pattern }) => pattern,
      "No silence is in force: every alarm is told.",
    );
  }
  print(JSON.stringify(silences, null, 2));
  return 0;
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
  print(
    json
      ? JSON.stringify(ended, null, 2)
      : `Ended: alarms of ${ended.map(({ pattern }) => pattern).join(", ")} are told again.`,
  );
  return 0;
}

function clockOf(at: number): string {
  return new Date(at).toLocaleString("en-GB", {
    weekday: "short",
    hour: "2-digit",
    minute: "2-digit",
  });
}
