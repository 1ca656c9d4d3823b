import type { Silence } from "../alerts/silence.ts";
import { inWords, parseDuration } from "../duration.ts";
import { addressArg, findStack, type StackClient } from "./stack-client.ts";
import { alignColumns, print, type Cell } from "./terminal.ts";
import { defineVerb, UsageError, type ExitCode } from "./verb.ts";

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
    duration: {
      type: "positional",
      required: false,
      description: "For how long: 30m, 2h, 7d",
    },
    why: {
      type: "string",
      description: "The reason, for whoever looks next",
      valueHint: "text",
    },
    list: { type: "boolean", description: "Show the silences in force" },
    end: {
      type: "string",
      description: "End one before its time",
      valueHint: "name or id",
    },
    json: { type: "boolean", description: "Print it as JSON" },
    ...addressArg,
  },
  run: async ({ name, duration, why, list, end, json, url }) => {
    if (end !== undefined) return endOne(findStack(url), end, json);
    if (list) return show(findStack(url), json);
    if (name === undefined || duration === undefined || why === undefined)
      throw new UsageError(
        '`hearth silence` needs a name, how long, and --why, for example: hearth silence gateway 2h --why "new memory"',
      );
    if (parseDuration(duration) === undefined)
      throw new UsageError(
        `"${duration}" is no duration: write 30m, 2h or 7d.`,
      );
    const made = (await findStack(url).ask("POST", "/api/silences", undefined, {
      pattern: name,
      for: duration,
      why,
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
  if (json) print(JSON.stringify(silences, null, 2));
  else if (silences.length === 0)
    print("No silence is in force: every alarm is told.");
  else {
    const head = ["id", "name", "for another", "why"].map((text): Cell => ({
      text,
      tone: "soft",
    }));
    const rows = silences.map((each): readonly Cell[] => [
      { text: each.id },
      { text: each.pattern, tone: "strong" },
      { text: inWords(each.until - Date.now()) },
      { text: each.why },
    ]);
    alignColumns([head, ...rows]).forEach(print);
  }
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
