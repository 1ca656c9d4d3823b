import type { HistoryRow } from "../supervisor/checks/incident-history.ts";
import { lastedInWords } from "../supervisor/checks/incident-words.ts";
import { meant } from "../core/nearest.ts";
import { counted, stateWord } from "../core/words.ts";
import type { Status } from "../supervisor/status.ts";
import { inZone } from "./local-time.ts";
import { addressArg, findStack, type StackClient } from "./stack-client.ts";
import {
  alignColumns,
  print,
  printJson,
  type Cell,
  type Tone,
} from "./terminal.ts";
import { defineVerb, jsonArg, UsageError } from "./verb.ts";

/** Checks leave maintenance with their first result, which takes some of them seconds. */
const TOGETHER_MS = 10_000;

export const history = defineVerb({
  name: "history",
  description:
    "Show incidents, one line each, and actions with their reasons; with --changes every change of state.",
  example: "hearth history gateway --lines 100",
  args: {
    name: {
      type: "positional",
      required: false,
      description: "Only this service, check or alarm",
    },
    lines: {
      type: "string",
      alias: "n",
      default: "30",
      description: "Number of entries, newest last",
      valueHint: "number",
    },
    changes: {
      type: "boolean",
      description: "Show every change of state instead of incidents",
    },
    ...jsonArg,
    ...addressArg,
  },
  run: async ({ name, lines, changes, json, url }) => {
    const count = Number(lines);
    if (!/^\d+$/.test(lines) || count < 1 || count > 10_000) {
      throw new UsageError(
        `--lines must be a number from 1 to 10000, not "${lines}".`,
      );
    }
    const query = new URLSearchParams({ limit: lines });
    if (name !== undefined) {
      query.set("name", name);
    }
    if (changes !== true) {
      query.set("by", "incident");
    }
    const stack = findStack(url);
    const { entries } = (await stack.ask("GET", `/api/history?${query}`)) as {
      readonly entries: readonly HistoryRow[];
    };
    if (entries.length === 0 && name !== undefined) {
      await checkName(stack, name);
    }
    if (json) {
      printJson(entries);
    } else if (entries.length === 0) {
      print(
        name === undefined
          ? "No entries yet."
          : `No entries for "${name}". Run \`hearth status\` for the names.`,
      );
    } else {
      const rows = groupMaintenance(entries.toReversed());
      alignColumns(rows.map(rowOf)).forEach(print);
    }
    return 0;
  },
});

/** Throws a UsageError for a misspelt service or check. Names of alarms are known only once they occurred. */
async function checkName(stack: StackClient, name: string): Promise<void> {
  const { services, checks } = (await stack.ask("GET", "/api/status")) as Pick<
    Status,
    "services" | "checks"
  >;
  const known = [...services, ...checks].map((each) => each.name);
  const hint = meant(name, known);
  if (hint !== "" && !known.includes(name)) {
    throw new UsageError(`service or check "${name}" not found${hint}.`);
  }
}

/**
 * One row for the checks that enter or leave maintenance together, without the state before and the reason where these differ.
 * `entries` are in order of time.
 */
export function groupMaintenance(
  entries: readonly HistoryRow[],
): readonly HistoryRow[] {
  const groups: [HistoryRow, ...HistoryRow[]][] = [];
  for (const entry of entries) {
    const group = groups.at(-1);
    if (group !== undefined && isTogether(group[0], entry)) {
      group.push(entry);
    } else {
      groups.push([entry]);
    }
  }
  return groups.map((group) => {
    const [first] = group;
    if (first.kind !== "check" || group.length === 1) {
      return first;
    }
    const { from, reason } = first;
    return {
      ...first,
      name: counted(group.length, "check"),
      from: group.every((each) => each.from === from) ? from : null,
      reason: group.every((each) => each.reason === reason) ? reason : null,
    };
  });
}

function isTogether(first: HistoryRow, entry: HistoryRow): boolean {
  return (
    first.kind === "check" &&
    entry.kind === "check" &&
    first.to === entry.to &&
    entry.at - first.at <= TOGETHER_MS &&
    (entry.to === "maintenance"
      ? first.reason === entry.reason
      : first.from === "maintenance" && entry.from === "maintenance")
  );
}

function rowOf(entry: HistoryRow): readonly Cell[] {
  return [
    { text: inZone(entry.at), tone: "soft" },
    { text: entry.kind, tone: "soft" },
    { text: entry.name, tone: "strong" },
    {
      text: `${entry.from === null ? "" : `${stateWord(entry.from)} → `}${stateWord(entry.to)}`,
      tone: toneOf(entry),
    },
    { text: causeOf(entry) },
  ];
}

function causeOf(entry: HistoryRow): string {
  if (entry.kind !== "incident") {
    return entry.reason ?? "";
  }
  const { restarts, reason } = entry;
  return [
    lastedInWords(entry),
    ...(restarts === 0 ? [] : [counted(restarts, "automatic restart")]),
    ...(reason === null ? [] : [reason]),
  ].join("; ");
}

function toneOf(entry: HistoryRow): Tone {
  const { to } = entry;
  if (entry.kind === "incident" && entry.until !== null) {
    return "plain";
  }
  if (["up", "running", "alarm-over"].includes(to)) {
    return "ok";
  }
  if (["down", "gave-up", "backing-off", "alarm"].includes(to)) {
    return "bad";
  }
  return ["pending", "restart", "heal", "failed"].includes(to)
    ? "warn"
    : "plain";
}
