/**
 * Tables of the checks in the history file. Times in milliseconds since 1970.
 * check_results: one row per probe, for some days; `counted` is 0 in maintenance and while the supervisor was offline.
 * check_hours: hourly sums, for months: time up, down and in maintenance, and latencies.
 * check_memory: the state of checks across restarts of the supervisor.
 * maintenance: windows opened by an operator; checks is a JSON list of names, null means all.
 * pings: received by heartbeats.
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

/** Percentiles of hours cannot be combined into those of a week; histograms can. */
export const LATENCIES_COLUMN =
  "ALTER TABLE check_hours ADD COLUMN latencies TEXT";
