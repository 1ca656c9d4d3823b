/**
 * What the checks keep in the history file. Times in milliseconds since 1970.
 * check_results: one row for each look, for some days; `counted` is 0 in maintenance and while the supervisor was offline.
 * check_hours: what is left of them, for months: how long it was well, sick or in maintenance, and how fast it answered.
 * check_memory: what a check must still know after a restart of the supervisor.
 * maintenance: windows that somebody opened by hand; checks is a JSON list of names, null means all.
 * pings: what other jobs said to a heartbeat.
 */
export const CHECK_TABLES = `
  CREATE TABLE check_results (
    name TEXT NOT NULL, at INTEGER NOT NULL, ok INTEGER NOT NULL, counted INTEGER NOT NULL, latency_ms INTEGER NOT NULL,
    covers_ms INTEGER NOT NULL, text TEXT, measures TEXT, PRIMARY KEY (name, at)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE check_hours (
    name TEXT NOT NULL, hour INTEGER NOT NULL, looks INTEGER NOT NULL, failures INTEGER NOT NULL,
    up_ms INTEGER NOT NULL, down_ms INTEGER NOT NULL, apart_ms INTEGER NOT NULL,
    p50_ms INTEGER, p95_ms INTEGER, p99_ms INTEGER, measures TEXT, PRIMARY KEY (name, hour)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE check_memory (name TEXT PRIMARY KEY, memory TEXT NOT NULL) STRICT;
  CREATE TABLE maintenance (
    id TEXT PRIMARY KEY, checks TEXT, begins_at INTEGER NOT NULL, ends_at INTEGER NOT NULL, why TEXT NOT NULL
  ) STRICT;
  CREATE TABLE pings (
    id INTEGER PRIMARY KEY, heartbeat TEXT NOT NULL, at INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('start', 'success', 'fail')), text TEXT
  ) STRICT;
  CREATE INDEX pings_by_heartbeat ON pings (heartbeat, id);`;

/** Percentiles of hours do not add up to those of a week; histograms do. */
export const LATENCIES_COLUMN =
  "ALTER TABLE check_hours ADD COLUMN latencies TEXT";
