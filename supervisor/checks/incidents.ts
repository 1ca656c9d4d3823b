import type { DatabaseSync } from "node:sqlite";
import { HOUR_MS } from "../../core/duration.ts";
import { hourOf, namesInHistory, watchedNames } from "./check-hours.ts";
import { bringUpToDate } from "./check-reports.ts";
import { FLAPPING_OVER_MS } from "./state.ts";

/**
 * A time in which a check failed, or in which a service had ended, repeatedly if it recovered for less than ten minutes in between:
 * a flapping service is one incident. Milliseconds since 1970.
 */
export interface Incident {
  /** Name of the check or service. */
  readonly check: string;
  readonly from: number;
  /** null: ongoing. */
  readonly until: number | null;
  /** From its start to its end. */
  readonly durationMs: number;
  /** Without the times in between in which it had recovered. */
  readonly downMs: number;
  /** How often it went down, or failed: at least 1, more where it was flapping. */
  readonly times: number;
  /** The reason at its start. */
  readonly reason: string | null;
  /** false: failures that were too few for the check to be down. */
  readonly down: boolean;
}

interface Outage {
  readonly check: string;
  readonly from: number;
  /** null: ongoing. */
  readonly until: number | null;
  readonly reason: string | null;
  /** What noticed it; a failed result is none yet. */
  readonly kind: "check" | "service" | "result";
}

/** Times in milliseconds since 1970. */
interface Range {
  readonly from: number;
  readonly until: number;
  /** Of these checks and services; undefined: of all. */
  readonly names: readonly string[] | undefined;
}

/**
 * When checks failed and services had ended, newest first, by the same results as availability: no downtime is without an
 * incident while raw results exist. Outages that reach beyond the time range are complete; incidents of one name do not overlap.
 */
export function incidents(
  db: DatabaseSync,
  from: number,
  until: number,
  names?: readonly string[],
): readonly Incident[] {
  bringUpToDate(db, until);
  const range = { from, until, names };
  const all = [
    ...OUTAGES.flatMap((events) => outages(db, events, range)),
    ...failures(db, range),
  ].toSorted((a, b) => a.from - b.from);
  const found: OpenIncident[] = [];
  const latest = new Map<string, OpenIncident>();
  for (const outage of all) {
    const before = latest.get(outage.check);
    if (before?.continuesWith(outage) === true) {
      before.add(outage);
    } else {
      const next = new OpenIncident(outage, until);
      latest.set(outage.check, next);
      found.push(next);
    }
  }
  return found
    .map((incident) => incident.closed())
    .toSorted((a, b) => b.from - a.from);
}

/** An incident that later outages may belong to; they are added in the order of their start. */
class OpenIncident {
  readonly #first: Outage;
  readonly #now: number;
  readonly #times = { check: 0, service: 0, result: 0 };
  #reason: string | null = null;
  #isOngoing = false;
  /** End of what was added, and of the failed results. */
  #end: number;
  #resultsEnd = 0;
  #downMs = 0;

  constructor(first: Outage, now: number) {
    this.#first = first;
    this.#now = now;
    this.#end = first.from;
    this.add(first);
  }

  continuesWith({ from }: Outage): boolean {
    return this.#isOngoing || from <= this.#end + FLAPPING_OVER_MS;
  }

  add({ kind, from, until, reason }: Outage): void {
    const end = until ?? this.#now;
    // Results that fail one after the other are one failure.
    if (kind !== "result" || from > this.#resultsEnd) {
      this.#times[kind] += 1;
    }
    if (kind === "result") {
      this.#resultsEnd = Math.max(this.#resultsEnd, end);
    }
    this.#downMs += Math.max(0, end - Math.max(from, this.#end));
    this.#end = Math.max(this.#end, end);
    this.#isOngoing ||= until === null;
    this.#reason ??= reason;
  }

  closed(): Incident {
    const { check, from } = this.#first;
    const { check: downs, service: ends, result: failures } = this.#times;
    // Most outages are noticed both by a check and by the end of the service.
    const outages = Math.max(downs, ends);
    return {
      check,
      from,
      until: this.#isOngoing ? null : this.#end,
      durationMs: (this.#isOngoing ? this.#now : this.#end) - from,
      downMs: this.#downMs,
      times: outages === 0 ? failures : outages,
      reason: this.#reason,
      down: outages > 0,
    };
  }
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

/** The history has years: of each name, only what came after the last end of an outage before the range is read. */
function outages(
  db: DatabaseSync,
  { kind, began, over }: OutageEvents,
  { from, until, names = namesInHistory(db, kind) }: Range,
): readonly Outage[] {
  const ends = `SELECT %s FROM events AS over WHERE over.kind = '${kind}' AND over.name = ?3 AND ${over}`;
  const found = db.prepare(
    `SELECT began.at, began.reason, (${ends.replace("%s", "over.at")} AND over.id > began.id ORDER BY over.id LIMIT 1) AS over_at
       FROM events AS began WHERE began.kind = '${kind}' AND began.name = ?3 AND ${began}
         AND began.id > coalesce((${ends.replace("%s", "over.id")} AND over.at < ?1 ORDER BY over.id DESC LIMIT 1), 0)
         AND began.at < ?2 AND coalesce(over_at, ?2) >= ?1`,
  );
  return names.flatMap((name) =>
    found.all(from, until, name).map((row): Outage => ({
      check: name,
      from: Number(row["at"]),
      until: row["over_at"] == null ? null : Number(row["over_at"]),
      reason: row["reason"] === null ? null : String(row["reason"]),
      kind,
    })),
  );
}

/** Failed results that count, from the hours that have any; each lasts until the next result, at most as long as it is valid. */
function failures(
  db: DatabaseSync,
  { from, until, names = watchedNames(db) }: Range,
): readonly Outage[] {
  const hours = db.prepare(
    `SELECT hour FROM check_hours WHERE name = ?1 AND failures > 0 AND hour > ?2 - ${HOUR_MS} AND hour < ?3
       UNION SELECT ?4 ORDER BY hour`,
  );
  const failed = db.prepare(
    `SELECT at, text, covers_ms,
            (SELECT min(at) FROM check_results AS later WHERE later.name = ?1 AND later.at > result.at) AS next_at
     FROM check_results AS result WHERE name = ?1 AND at >= ?2 AND at < ?3 AND NOT ok AND counted ORDER BY at`,
  );
  const failedIn = (name: string, hour: number): readonly Outage[] => {
    const start = Math.max(from, hour);
    const end = Math.min(until, hour + HOUR_MS);
    return failed.all(name, start, end).map((row): Outage => {
      const at = Number(row["at"]);
      const valid = at + Number(row["covers_ms"]);
      const next = row["next_at"] === null ? null : Number(row["next_at"]);
      return {
        check: name,
        from: at,
        until:
          next === null && valid >= until
            ? null
            : Math.min(next ?? valid, valid),
        reason: row["text"] === null ? null : String(row["text"]),
        kind: "result",
      };
    });
  };
  return names.flatMap((name) =>
    hours
      .all(name, from, until, hourOf(until))
      .flatMap(({ hour }) => failedIn(name, Number(hour))),
  );
}
