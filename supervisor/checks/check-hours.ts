import type { DatabaseSync, StatementSync } from "node:sqlite";
import { HOUR_MS } from "../../core/duration.ts";

/** Sums of a check over a time range. Milliseconds. */
export interface Stretch {
  readonly looks: number;
  readonly failures: number;
  readonly upMs: number;
  readonly downMs: number;
  /** In maintenance, or while the supervisor was offline. */
  readonly apartMs: number;
}

export interface Latencies {
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

/** One row of check_results. Times in milliseconds since 1970. */
interface Result {
  readonly at: number;
  readonly ok: boolean;
  readonly counted: boolean;
  readonly latencyMs: number;
  readonly coversMs: number;
  readonly measures: string | null;
}

/** Histogram of latencies in steps of 5 %; the key is the step. */
export type Histogram = Readonly<Record<string, number>>;

const STEP_FACTOR = 1.05;

/** `names` of the rows of a table that fulfil a condition, each found by one index lookup: there are many rows of few names. */
export function namesOf(table: string, condition: string): string {
  const next = `SELECT min(name) FROM ${table} WHERE ${condition}`;
  return `WITH RECURSIVE names (name) AS (
    ${next} UNION ALL SELECT (${next} AND name > names.name) FROM names WHERE name IS NOT NULL
  )`;
}

/** `names` of all checks with raw results. */
const WATCHED_NAMES = namesOf("check_results", "true");

export function watchedNames(db: DatabaseSync): readonly string[] {
  return readNames(db, WATCHED_NAMES);
}

/** Names in the history's entries of a kind. */
export function namesInHistory(
  db: DatabaseSync,
  kind: string,
): readonly string[] {
  return readNames(db, namesOf("events", `kind = '${kind}'`));
}

function readNames(db: DatabaseSync, names: string): readonly string[] {
  return db
    .prepare(`${names} SELECT name FROM names WHERE name IS NOT NULL`)
    .all()
    .map((row) => String(row["name"]));
}

/** Sums up the results of every hour that has ended since the last call. */
export function rollUpChecks(db: DatabaseSync, now: number): void {
  const names = watchedNames(db);
  const rows = resultsFrom(db);
  const lastHour = db.prepare(
    "SELECT max(hour) AS hour FROM check_hours WHERE name = ?",
  );
  const firstResult = db.prepare(
    "SELECT min(at) AS at FROM check_results WHERE name = ?",
  );
  const writeHour = openHourWriter(db);
  const until = hourOf(now);
  for (const name of names) {
    const last = lastHour.get(name)?.["hour"];
    const from =
      last == null
        ? hourOf(Number(firstResult.get(name)?.["at"] ?? now))
        : Number(last) + HOUR_MS;
    if (from >= until) {
      continue;
    }
    const results = readResults(rows, name, from, until);
    db.exec("BEGIN");
    try {
      for (let hour = from; hour < until; hour += HOUR_MS) {
        writeHour(name, hour, results);
      }
      db.exec("COMMIT");
    } catch (error) {
      db.exec("ROLLBACK");
      throw error;
    }
  }
}

/** Writes the sums of one hour of a check, unless nothing happened in it. */
function openHourWriter(
  db: DatabaseSync,
): (name: string, hour: number, results: readonly Result[]) => void {
  const put = db.prepare(
    `INSERT OR REPLACE INTO check_hours
       (name, hour, looks, failures, up_ms, down_ms, apart_ms, p50_ms, p95_ms, p99_ms, measures, latencies)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  return (name, hour, results) => {
    const { looks, failures, upMs, downMs, apartMs } = sumUp(
      results,
      hour,
      hour + HOUR_MS,
    );
    if (looks + upMs + downMs + apartMs === 0) {
      return;
    }
    const own = within(results, hour, hour + HOUR_MS);
    const latencies = histogramOf(own);
    const { p50, p95, p99 } = latenciesOf(latencies);
    put.run(
      name,
      hour,
      looks,
      failures,
      upMs,
      downMs,
      apartMs,
      p50,
      p95,
      p99,
      own.findLast(({ measures }) => measures !== null)?.measures ?? null,
      JSON.stringify(latencies),
    );
  };
}

/** Sums of a check from raw results, which are kept for some days. */
export function stretchOf(
  db: DatabaseSync,
  name: string,
  from: number,
  until: number,
): Stretch {
  return sumUp(readResults(resultsFrom(db), name, from, until), from, until);
}

/** The latencies of one check from raw results. */
export function histogramFrom(
  db: DatabaseSync,
  name: string,
  from: number,
  until: number,
): Histogram {
  const results = readResults(resultsFrom(db), name, from, until);
  return histogramOf(within(results, from, until));
}

/** Percentiles in milliseconds, accurate to 5 %; null without successful probes. */
export function latenciesOf(histogram: Histogram): Latencies {
  const steps = Object.entries(histogram)
    .map(([step, count]) => ({ step: Number(step), count }))
    .toSorted((a, b) => a.step - b.step);
  const total = steps.reduce((sum, { count }) => sum + count, 0);
  const at = (share: number): number | null => {
    let seen = 0;
    for (const { step, count } of steps) {
      seen += count;
      if (seen >= share * total) {
        return Math.round(STEP_FACTOR ** step - 1);
      }
    }
    return null;
  };
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

export function addHistograms(all: readonly Histogram[]): Histogram {
  const sum: Record<string, number> = {};
  for (const each of all) {
    for (const [step, count] of Object.entries(each)) {
      sum[step] = (sum[step] ?? 0) + count;
    }
  }
  return sum;
}

export function hourOf(at: number): number {
  return Math.floor(at / HOUR_MS) * HOUR_MS;
}

function resultsFrom(db: DatabaseSync): StatementSync {
  return db.prepare(
    `SELECT at, ok, counted, latency_ms, covers_ms, measures FROM check_results
     WHERE name = ?1 AND at < ?3 AND at >= coalesce((SELECT max(at) FROM check_results WHERE name = ?1 AND at <= ?2), ?2)
     ORDER BY at`,
  );
}

/** The results of a time range, and the last one before it, which may extend into it. */
function readResults(
  rows: StatementSync,
  name: string,
  from: number,
  until: number,
): readonly Result[] {
  return rows.all(name, from, until).map((row) => ({
    at: Number(row["at"]),
    ok: row["ok"] === 1,
    counted: row["counted"] === 1,
    latencyMs: Number(row["latency_ms"]),
    coversMs: Number(row["covers_ms"]),
    measures: row["measures"] === null ? null : String(row["measures"]),
  }));
}

/** Each result is valid until the next one, at most for `coversMs`. */
function sumUp(
  results: readonly Result[],
  from: number,
  until: number,
): Stretch {
  let [upMs, downMs, apartMs] = [0, 0, 0];
  for (const [index, { at, ok, counted, coversMs }] of results.entries()) {
    const next = results[index + 1]?.at ?? Infinity;
    const end = Math.min(next, at + coversMs, until);
    const covered = Math.max(0, end - Math.max(at, from));
    if (!counted) {
      apartMs += covered;
    } else if (ok) {
      upMs += covered;
    } else {
      downMs += covered;
    }
  }
  const own = within(results, from, until);
  return {
    looks: own.length,
    failures: own.filter(({ ok, counted }) => counted && !ok).length,
    upMs,
    downMs,
    apartMs,
  };
}

function within(
  results: readonly Result[],
  from: number,
  until: number,
): readonly Result[] {
  return results.filter(({ at }) => at >= from && at < until);
}

function histogramOf(results: readonly Result[]): Histogram {
  const histogram: Record<string, number> = {};
  for (const { ok, latencyMs } of results) {
    if (!ok) {
      continue;
    }
    const step = Math.round(Math.log(latencyMs + 1) / Math.log(STEP_FACTOR));
    histogram[step] = (histogram[step] ?? 0) + 1;
  }
  return histogram;
}
