import { FLAPPING_OVER_MS } from "../checks/state.ts";
import type { Alarm } from "./alarm.ts";
import type { AlarmRecord } from "./alarm-store.ts";

/** An alarm as often as it was raised again within ten minutes. Times in milliseconds since 1970. */
export interface AlarmIncident {
  /** As it was raised last. */
  readonly alarm: Alarm;
  /** The worst. */
  readonly level: Alarm["level"];
  readonly from: number;
  /** null: open. */
  readonly until: number | null;
  readonly times: number;
  /** The channels that were notified of it and not yet of its end. */
  readonly channels: readonly string[];
}

const LEVELS: readonly Alarm["level"][] = ["notice", "warning", "down"];

/** Groups alarms, newest first, into incidents, newest first. */
export function alarmIncidents(
  records: readonly AlarmRecord[],
): readonly AlarmIncident[] {
  const found: AlarmIncident[] = [];
  const latest = new Map<string, number>();
  for (const record of records.toReversed()) {
    const { fingerprint } = record.alarm;
    const at = latest.get(fingerprint);
    const before = at === undefined ? undefined : found[at];
    if (at !== undefined && before !== undefined && follows(before, record)) {
      found[at] = together(before, record);
    } else {
      latest.set(fingerprint, found.push(incidentOf(record)) - 1);
    }
  }
  return found.toSorted((a, b) => b.from - a.from);
}

function incidentOf(record: AlarmRecord): AlarmIncident {
  const { alarm, raisedAt, clearedAt, notified } = record;
  return {
    alarm,
    level: alarm.level,
    from: raisedAt,
    until: clearedAt,
    times: 1,
    channels: Object.keys(notified),
  };
}

function follows(
  { level, until }: AlarmIncident,
  { raisedAt }: AlarmRecord,
): boolean {
  return (
    // Each is a message of its own.
    level !== "notice" &&
    (until === null || raisedAt <= until + FLAPPING_OVER_MS)
  );
}

function together(before: AlarmIncident, later: AlarmRecord): AlarmIncident {
  const next = incidentOf(later);
  return {
    ...next,
    from: before.from,
    level:
      LEVELS.indexOf(before.level) > LEVELS.indexOf(next.level)
        ? before.level
        : next.level,
    times: before.times + 1,
    channels: [...new Set([...before.channels, ...next.channels])],
  };
}
