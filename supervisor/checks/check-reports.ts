import type { DatabaseSync } from "node:sqlite";
import { HOUR_MS } from "../../core/duration.ts";
import {
  addHistograms,
  histogramFrom,
  hourOf,
  latenciesOf,
  namesOf,
  rollUpChecks,
  stretchOf,
  type Histogram,
  type Latencies,
  type Stretch,
} from "./check-hours.ts";
import type { Measured } from "./kinds/probe.ts";

/** Availability and latency of a check over a longer time. */
export type CheckRecord = Stretch &
  Latencies & {
    readonly name: string;
    /** Percentage of the time that counts (neither maintenance nor unwatched); null if none does. */
    readonly availability: number | null;
  };

/** A record of one step of a longer time. */
export type CheckStep = CheckRecord & {
  /** Milliseconds since 1970. */
  readonly from: number;
};

export type HourBar = Stretch & {
  /** Start of the hour, in milliseconds since 1970. */
  readonly hour: number;
};

/** The record of each check in a time range, by whole hours where raw results no longer exist. */
export function checkRecords(
  db: DatabaseSync,
  from: number,
  until: number,
): readonly CheckRecord[] {
  bringUpToDate(db, until);
  return namesIn(db, from, until).map((name) =>
    recordOf(db, name, from, until),
  );
}

/** A check in each of the last steps of whole hours, oldest first; the last step is still in progress. */
export function checkSteps(
  db: DatabaseSync,
  name: string,
  now: number,
  { hours, steps }: { readonly hours: number; readonly steps: number },
): readonly CheckStep[] {
  bringUpToDate(db, now);
  const end = hourOf(now) + HOUR_MS;
  return Array.from({ length: steps }, (_, index) => {
    const from = end - (steps - index) * hours * HOUR_MS;
    const until = Math.min(now, from + hours * HOUR_MS);
    return { from, ...recordOf(db, name, from, until) };
  });
}

/** The record of one check in a time range, as in `checkRecords`. */
export function checkRecord(
  db: DatabaseSync,
  name: string,
  from: number,
  until: number,
): CheckRecord {
  bringUpToDate(db, until);
  return recordOf(db, name, from, until);
}

/** The availability of each check in a time range, as in `checkRecords`, without reading latencies. */
export function availabilities(
  db: DatabaseSync,
  from: number,
  until: number,
): ReadonlyMap<string, number | null> {
  bringUpToDate(db, until);
  return new Map(
    namesIn(db, from, until).map((name) => [
      name,
      availabilityOf(stretchBetween(db, name, from, until)),
    ]),
  );
}

function recordOf(
  db: DatabaseSync,
  name: string,
  from: number,
  until: number,
): CheckRecord {
  const stretch = stretchBetween(db, name, from, until);
  return {
    name,
    ...stretch,
    ...latenciesOf(latenciesBetween(db, name, from, until)),
    availability: availabilityOf(stretch),
  };
}

function availabilityOf({ upMs, downMs }: Stretch): number | null {
  const counted = upMs + downMs;
  return counted === 0 ? null : (100 * upMs) / counted;
}

const namesWithin = (table: string, time: string): string =>
  `${namesOf(table, "true")}
   SELECT name FROM names WHERE EXISTS
     (SELECT 1 FROM ${table} AS t WHERE t.name = names.name AND t.${time} >= ?1 AND t.${time} < ?2)`;

/** With how long before a time range their rows can start. */
const NAMES_IN = [
  [namesWithin("check_hours", "hour"), HOUR_MS],
  [namesWithin("check_results", "at"), 0],
] as const;

const HOUR_BARS = 24;

/** The last hours of each check, oldest first, including the current one; hours without probes are all zeros. */
export function hourBars(
  db: DatabaseSync,
  now: number,
): ReadonlyMap<string, readonly HourBar[]> {
  bringUpToDate(db, now);
  const first = hourOf(now) - (HOUR_BARS - 1) * HOUR_MS;
  const rows = db.prepare(
    "SELECT * FROM check_hours WHERE name = ? AND hour >= ?",
  );
  return new Map(
    namesIn(db, first, now).map((name) => {
      const known = new Map(
        rows
          .all(name, first)
          .map((row) => [Number(row["hour"]), stretchIn(row)]),
      );
      const bars = Array.from({ length: HOUR_BARS }, (_, index): HourBar => {
        const hour = first + index * HOUR_MS;
        const stretch =
          known.get(hour) ??
          (hour === hourOf(now) ? stretchOf(db, name, hour, now) : nothing);
        return { hour, ...stretch };
      });
      return [name, bars];
    }),
  );
}

/** A measurement of a check, the last one of each hour. */
export function hourlyMeasure(
  db: DatabaseSync,
  { check, measure }: { readonly check: string; readonly measure: string },
  from: number,
  until: number,
): readonly Measured[] {
  bringUpToDate(db, until);
  return db
    .prepare(
      `SELECT hour AS at, measures ->> ('$.' || ?2) AS value FROM check_hours
       WHERE name = ?1 AND hour >= ?3 AND hour < ?4 AND measures ->> ('$.' || ?2) IS NOT NULL ORDER BY hour`,
    )
    .all(check, measure, from, until)
    .map((row) => ({ at: Number(row["at"]), value: Number(row["value"]) }));
}

/** Removes raw results (with pings and maintenance windows) and hours before these times; transitions are kept forever. */
export function retainChecks(
  db: DatabaseSync,
  now: number,
  keep: { readonly rawSince: number; readonly hoursSince: number },
): { readonly results: number; readonly hours: number } {
  rollUpChecks(db, now);
  const results = db
    .prepare("DELETE FROM check_results WHERE at < ?")
    .run(keep.rawSince);
  const hours = db
    .prepare("DELETE FROM check_hours WHERE hour < ?")
    .run(keep.hoursSince);
  db.prepare(
    `DELETE FROM pings WHERE at < ? AND id NOT IN
       (SELECT max(id) FROM pings GROUP BY heartbeat, kind)`,
  ).run(keep.rawSince);
  db.prepare("DELETE FROM maintenance WHERE ends_at < ?").run(keep.rawSince);
  return { results: Number(results.changes), hours: Number(hours.changes) };
}

/** Until when the hours of a file were summed up, because a report asks many times. */
const summedUntil = new WeakMap<DatabaseSync, number>();

/** Sums up the hours that have ended. */
export function bringUpToDate(db: DatabaseSync, until: number): void {
  const thisHour = hourOf(until);
  if ((summedUntil.get(db) ?? 0) >= thisHour) {
    return;
  }
  rollUpChecks(db, until);
  summedUntil.set(db, thisHour);
}

const nothing: Stretch = {
  looks: 0,
  failures: 0,
  upMs: 0,
  downMs: 0,
  apartMs: 0,
};

/**
 * A time range as the whole hours in the roll-ups, and the rest at both ends, for which raw results may still exist. SQLite sums up
 * the hours: a year of them, read into memory, would block everything else for seconds.
 */
function partsOf(
  from: number,
  until: number,
): {
  readonly hours: readonly [number, number];
  readonly ends: readonly (readonly [number, number])[];
} {
  const firstWhole = hourOf(from + HOUR_MS - 1);
  const lastWhole = Math.max(firstWhole, hourOf(until));
  const ends: readonly (readonly [number, number])[] = [
    [from, Math.min(firstWhole, until)],
    [lastWhole, until],
  ];
  return {
    hours: [firstWhole, lastWhole],
    ends: ends.filter(([start, end]) => start < end),
  };
}

function stretchBetween(
  db: DatabaseSync,
  name: string,
  from: number,
  until: number,
): Stretch {
  const { hours, ends } = partsOf(from, until);
  const summed = db
    .prepare(
      `SELECT sum(looks) AS looks, sum(failures) AS failures, sum(up_ms) AS up_ms, sum(down_ms) AS down_ms, sum(apart_ms) AS apart_ms
       FROM check_hours WHERE name = ? AND hour >= ? AND hour < ?`,
    )
    .get(name, ...hours);
  return ends
    .map(([start, end]) => stretchOf(db, name, start, end))
    .reduce(together, stretchIn(summed ?? {}));
}

function latenciesBetween(
  db: DatabaseSync,
  name: string,
  from: number,
  until: number,
): Histogram {
  const { hours, ends } = partsOf(from, until);
  const summed = db
    .prepare(
      `SELECT key, sum(value) AS count FROM check_hours, json_each(latencies)
       WHERE name = ? AND hour >= ? AND hour < ? GROUP BY key`,
    )
    .all(name, ...hours);
  return addHistograms([
    Object.fromEntries(
      summed.map(({ key, count }) => [String(key), Number(count)]),
    ),
    ...ends.map(([start, end]) => histogramFrom(db, name, start, end)),
  ]);
}

function together(a: Stretch, b: Stretch): Stretch {
  return {
    looks: a.looks + b.looks,
    failures: a.failures + b.failures,
    upMs: a.upMs + b.upMs,
    downMs: a.downMs + b.downMs,
    apartMs: a.apartMs + b.apartMs,
  };
}

function stretchIn(row: Readonly<Record<string, unknown>>): Stretch {
  return {
    looks: Number(row["looks"] ?? 0),
    failures: Number(row["failures"] ?? 0),
    upMs: Number(row["up_ms"] ?? 0),
    downMs: Number(row["down_ms"] ?? 0),
    apartMs: Number(row["apart_ms"] ?? 0),
  };
}

/** Checks with hours or raw results in a time range. */
function namesIn(
  db: DatabaseSync,
  from: number,
  until: number,
): readonly string[] {
  const names = NAMES_IN.flatMap(([sql, beforeMs]) =>
    db
      .prepare(sql)
      .all(from - beforeMs, until)
      .map((row) => String(row["name"])),
  );
  return [...new Set(names)].toSorted();
}
