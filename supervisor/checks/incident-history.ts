import { MINUTE_MS } from "../../core/duration.ts";
import type { History, HistoryEntry } from "../history/history.ts";
import { incidents, type Incident } from "./incidents.ts";

/** An incident in the place of its changes of state, automatic restarts and alarms; `at` is its start. */
interface IncidentEntry extends Omit<Incident, "check" | "from"> {
  readonly at: number;
  readonly kind: "incident";
  readonly name: string;
  readonly from: null;
  readonly to: "down" | "failed";
  /** Automatic ones. */
  readonly restarts: number;
}

export type HistoryRow = HistoryEntry | IncidentEntry;

/** A change and what follows from it are recorded one after the other. */
const SLACK_MS = MINUTE_MS;
/** Entries that are read for each row: a flapping service has hundreds. */
const ENTRIES_PER_ROW = 50;
const MAX_ENTRIES = 20_000;
const AUTOMATIC: readonly string[] = ["restart", "heal", "alarm", "alarm-over"];

/** The history, newest first, with one row for each incident; only of `name`, if given. */
export function historyByIncident(
  history: History,
  now: number,
  limit: number,
  name?: string,
): readonly HistoryRow[] {
  const most = Math.min(MAX_ENTRIES, limit * ENTRIES_PER_ROW);
  const entries = history.latest(most, name);
  const oldest = entries.length < most ? 0 : (entries.at(-1)?.at ?? 0);
  const names = name === undefined ? undefined : [name];
  const found = incidents(history.db, oldest, now, names).map((incident) =>
    entryOf(incident, entries),
  );
  const others = entries.filter(
    (entry) =>
      !isPassing(entry) && !found.some((incident) => covers(incident, entry)),
  );
  return [...found, ...others].toSorted((a, b) => b.at - a.at).slice(0, limit);
}

function entryOf(
  { check, from, ...incident }: Incident,
  entries: readonly HistoryEntry[],
): IncidentEntry {
  const entry: IncidentEntry = {
    ...incident,
    at: from,
    kind: "incident",
    name: check,
    from: null,
    to: incident.down ? "down" : "failed",
    restarts: 0,
  };
  const restarts = entries.filter(
    (each) => ["restart", "heal"].includes(each.to) && covers(entry, each),
  );
  return { ...entry, restarts: restarts.length };
}

/** A step of a start, a first result, or a failure that was too brief to be down: an incident, if it counted. */
function isPassing({ kind, from, to }: HistoryEntry): boolean {
  const states = [from, to];
  return kind === "service"
    ? ["waiting", "starting"].includes(to) ||
        (from === "starting" && to === "running")
    : kind === "check" &&
        states.includes("up") &&
        (states.includes("new") || states.includes("pending"));
}

function covers(incident: IncidentEntry, entry: HistoryEntry): boolean {
  const { at, until, name } = incident;
  return (
    entry.name === name &&
    entry.at >= at - SLACK_MS &&
    (until === null || entry.at <= until + SLACK_MS) &&
    (entry.kind === "act" ? AUTOMATIC.includes(entry.to) : !isAsked(entry))
  );
}

/** A change that a person made. */
function isAsked({ from, to }: HistoryEntry): boolean {
  return [from, to].some((state) =>
    ["paused", "maintenance", "stopping", "stopped"].includes(state ?? ""),
  );
}
