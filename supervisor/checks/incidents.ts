import type { DatabaseSync } from "node:sqlite";
import { hourOf, WATCHED_NAMES } from "./check-hours.ts";
import { bringUpToDate } from "./check-reports.ts";

/** A time in which a check failed, or in which a service had ended. Milliseconds since 1970. */
export interface Incident {
  /** Name of the check or service. */
  readonly check: string;
  readonly from: number;
  /** null: ongoing. */
  readonly until: number | null;
  readonly durationMs: number;
  /** The reason at its start. */
  readonly reason: string | null;
  /** false: failures that were too few for the check to be down. */
  readonly down: boolean;
}

type Outage = Omit<Incident, "durationMs">;

const HOUR_MS = 3_600_000;
/** A service that ends is noticed by its check a little later. */
const SAME_OUTAGE_MS = 60_000;

/**
 * When checks failed and services had ended, newest first, by the same results as availability: no downtime is without an
 * incident while raw results exist. Incidents that reach beyond the time range are complete; those of one name do not overlap.
 */
export function incidents(
  db: DatabaseSync,
  from: number,
  until: number,
): readonly Incident[] {
  bringUpToDate(db, until);
  const all = [
    ...OUTAGES.flatMap((events) => outages(db, events, from, until)),
    ...failures(db, from, until),
  ].toSorted((a, b) => a.from - b.from || Number(b.down) - Number(a.down));
  const merged: Outage[] = [];
  const latest = new Map<string, number>();
  for (const outage of all) {
    const at = latest.get(outage.check);
    const before = at === undefined ? undefined : merged[at];
    if (at !== undefined && before !== undefined && touches(before, outage)) {
      merged[at] = together(before, outage);
    } else {
      latest.set(outage.check, merged.push(outage) - 1);
    }
  }
  return merged
    .map((outage) => ({
      ...outage,
      durationMs: (outage.until ?? until) - outage.from,
    }))
    .toSorted((a, b) => b.from - a.from);
}

function touches({ until }: Outage, later: Outage): boolean {
  return until === null || later.from <= until + SAME_OUTAGE_MS;
}

function together(before: Outage, later: Outage): Outage {
  const ends = [before.until, later.until];
  return {
    ...before,
    until: ends.includes(null) ? null : Math.max(...ends.map(Number)),
    reason: before.reason ?? later.reason,
    down: before.down || later.down,
  };
}

/** What begins and ends an outage, as conditions of SQL on events of one kind. */
interface OutageEvents {
  readonly kind: "check" | "service";
  readonly began: string;
  readonly over: string;
}

const OUTAGES: readonly OutageEvents[] = [
  {
    kind: "check",
    began: "began.to_state = 'down'",
    over: "over.from_state = 'down'",
  },
  // A service that is restarted at once is down as well, however short.
  {
    kind: "service",
    began: "began.to_state IN ('backing-off', 'gave-up')",
    over: "over.to_state IN ('running', 'stopped')",
  },
];

function outages(
  db: DatabaseSync,
  { kind, began, over }: OutageEvents,
  from: number,
  until: number,
): readonly Outage[] {
  return db
    .prepare(
      `SELECT began.name, began.at, began.reason,
              (SELECT min(over.at) FROM events AS over WHERE over.kind = '${kind}' AND over.name = began.name
                 AND ${over} AND over.id > began.id) AS over_at
       FROM events AS began WHERE began.kind = '${kind}' AND ${began} AND began.at < ?2
         AND coalesce(over_at, ?2) >= ?1 ORDER BY began.at`,
    )
    .all(from, until)
    .map(outageIn);
}

function outageIn(row: Readonly<Record<string, unknown>>): Outage {
  return {
    check: String(row["name"]),
    from: Number(row["at"]),
    until: row["over_at"] == null ? null : Number(row["over_at"]),
    reason: row["reason"] === null ? null : String(row["reason"]),
    down: true,
  };
}

/** Series of failures that count, from the hours that have any; each lasts until the next result, at most as long as it is valid. */
function failures(
  db: DatabaseSync,
  from: number,
  until: number,
): readonly Outage[] {
  const hours = db
    .prepare(
      `${WATCHED_NAMES}
       SELECT name, hour FROM check_hours WHERE failures > 0 AND hour > ?1 - ${HOUR_MS} AND hour < ?2
       UNION SELECT name, ?3 FROM names WHERE name IS NOT NULL
       ORDER BY name, hour`,
    )
    .all(from, until, hourOf(until));
  const failed = db.prepare(
    `SELECT at, text, covers_ms,
            (SELECT min(at) FROM check_results AS later WHERE later.name = ?1 AND later.at > result.at) AS next_at
     FROM check_results AS result WHERE name = ?1 AND at >= ?2 AND at < ?3 AND NOT ok AND counted ORDER BY at`,
  );
  return hours.flatMap(({ name, hour }) => {
    const start = Math.max(from, Number(hour));
    const end = Math.min(until, Number(hour) + HOUR_MS);
    return failed.all(String(name), start, end).map((row): Outage => {
      const at = Number(row["at"]);
      const valid = at + Number(row["covers_ms"]);
      const next = row["next_at"] === null ? null : Number(row["next_at"]);
      return {
        check: String(name),
        from: at,
        until:
          next === null && valid >= until
            ? null
            : Math.min(next ?? valid, valid),
        reason: row["text"] === null ? null : String(row["text"]),
        down: false,
      };
    });
  });
}
