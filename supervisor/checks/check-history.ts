import type { DatabaseSync } from "node:sqlite";
import type { Measured, Ping, PingKind, Pings } from "./kinds/probe.ts";
import type { CheckResult } from "./run-check.ts";
import type { CheckMemory } from "./state.ts";

/** The state of a check after a restart of the supervisor. */
export interface Recalled {
  readonly kind: string;
  readonly memory: CheckMemory;
  readonly latest: CheckResult | null;
  /** Why it is paused; null if it is not. */
  readonly paused: string | null;
  /** When it was first configured, in milliseconds since 1970. */
  readonly watchedSince: number;
}

/** Checks in the history file, except for their transitions, which are events. */
export interface CheckHistory {
  /**
   * Adds the result of a probe. `counted` is false in maintenance and while the supervisor is offline; `coversMs` is how long
   * the result is valid at most.
   */
  readonly record: (
    check: string,
    result: CheckResult,
    counted: boolean,
    coversMs: number,
  ) => void;
  /** A measurement of a check since then, at most one per ten minutes, oldest first. */
  readonly measured: (
    check: string,
    measure: string,
    since: number,
  ) => readonly Measured[];
  readonly remember: (check: string, recalled: Recalled) => void;
  readonly recall: () => ReadonlyMap<string, Recalled>;
  readonly forget: (check: string) => void;
  readonly ping: (
    heartbeat: string,
    kind: PingKind,
    text: string | null,
    at: number,
  ) => void;
  readonly pings: (heartbeat: string) => Pings;
}

const TREND_EVERY_MS = 600_000;

export function openCheckHistory(db: DatabaseSync): CheckHistory {
  return { ...openResults(db), ...openMemories(db), ...openPings(db) };
}

function openResults(
  db: DatabaseSync,
): Pick<CheckHistory, "record" | "measured"> {
  const add = db.prepare(
    `INSERT OR REPLACE INTO check_results (name, at, ok, counted, latency_ms, covers_ms, text, measures)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const trend = db.prepare(
    `SELECT at, measures ->> ('$.' || ?2) AS value FROM check_results
     WHERE name = ?1 AND at >= ?3 AND measures ->> ('$.' || ?2) IS NOT NULL GROUP BY at / ${TREND_EVERY_MS} ORDER BY at`,
  );
  return {
    record: (check, result, counted, coversMs) => {
      const { at, ok, latencyMs, text } = result;
      const measures = JSON.stringify(result.measures);
      add.run(
        check,
        at,
        ok ? 1 : 0,
        counted ? 1 : 0,
        latencyMs,
        coversMs,
        ok ? null : text,
        measures === "{}" ? null : measures,
      );
    },
    measured: (check, measure, since) =>
      trend.all(check, measure, since).map((row) => ({
        at: Number(row["at"]),
        value: Number(row["value"]),
      })),
  };
}

function openMemories(
  db: DatabaseSync,
): Pick<CheckHistory, "remember" | "recall" | "forget"> {
  const put = db.prepare(
    "INSERT INTO check_memory (name, memory) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET memory = excluded.memory",
  );
  const all = db.prepare("SELECT name, memory FROM check_memory");
  const drop = db.prepare("DELETE FROM check_memory WHERE name = ?");
  return {
    remember: (check, recalled) => {
      put.run(check, JSON.stringify(recalled));
    },
    recall: () =>
      new Map(
        all
          .all()
          .map((row) => [
            String(row["name"]),
            JSON.parse(String(row["memory"])) as Recalled,
          ]),
      ),
    forget: (check) => {
      drop.run(check);
    },
  };
}

function openPings(db: DatabaseSync): Pick<CheckHistory, "ping" | "pings"> {
  const add = db.prepare(
    "INSERT INTO pings (heartbeat, at, kind, text) VALUES (?, ?, ?, ?)",
  );
  const lastPing = db.prepare(
    "SELECT at, kind, text FROM pings WHERE heartbeat = ? ORDER BY id DESC LIMIT 1",
  );
  const lastOutcome = db.prepare(
    "SELECT at, kind, text FROM pings WHERE heartbeat = ? AND kind <> 'start' ORDER BY id DESC LIMIT 1",
  );
  const lastSuccess = db.prepare(
    "SELECT max(at) AS at FROM pings WHERE heartbeat = ? AND kind = 'success'",
  );
  return {
    ping: (heartbeat, kind, text, at) => {
      add.run(heartbeat, at, kind, text);
    },
    pings: (heartbeat) => {
      const latest = lastPing.get(heartbeat);
      const outcome = lastOutcome.get(heartbeat);
      const success = lastSuccess.get(heartbeat)?.["at"] ?? null;
      return {
        runningSince:
          latest?.["kind"] === "start" ? Number(latest["at"]) : undefined,
        outcome: outcome === undefined ? undefined : pingOf(outcome),
        latestSuccess: success === null ? undefined : Number(success),
      };
    },
  };
}

function pingOf(row: Readonly<Record<string, unknown>>): Ping {
  const kind = row["kind"];
  return {
    at: Number(row["at"]),
    kind: kind === "start" || kind === "fail" ? kind : "success",
    text: row["text"] === null ? null : String(row["text"]),
  };
}
