import type { DatabaseSync } from "node:sqlite";
import type { Alarm } from "./alarm.ts";
import type { AlertMessage } from "./message.ts";
import type { Silence } from "./silence.ts";

/** Tables of alerts in the history file. */
export const ALARM_TABLES = `
  CREATE TABLE alarms (
    id TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, raised_at INTEGER NOT NULL, cleared_at INTEGER,
    alarm TEXT NOT NULL, told TEXT NOT NULL
  ) STRICT;
  CREATE INDEX alarms_by_time ON alarms (raised_at);
  CREATE TABLE silences (
    id TEXT PRIMARY KEY, pattern TEXT NOT NULL, why TEXT NOT NULL, from_at INTEGER NOT NULL, until_at INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE alert_outbox (
    id TEXT PRIMARY KEY, sink TEXT NOT NULL, message TEXT NOT NULL, attempts INTEGER NOT NULL, next_at INTEGER NOT NULL
  ) STRICT`;

/** An alarm from start to end, and the sinks that were notified. Times in milliseconds since 1970. */
export interface AlarmRecord {
  readonly id: string;
  readonly raisedAt: number;
  readonly alarm: Alarm;
  readonly clearedAt: number | null;
  /** When each sink was last notified. */
  readonly notified: Readonly<Record<string, number>>;
}

/** A pending message for one sink. */
export interface Delivery {
  readonly id: string;
  readonly sink: string;
  readonly message: AlertMessage;
  readonly attempts: number;
  /** Milliseconds since 1970. */
  readonly nextAt: number;
}

export interface AlarmStore {
  /** Active alarms and those whose end is not reported yet (that of a notice never is), silences in force, pending messages. */
  readonly load: (now: number) => {
    readonly alarms: readonly AlarmRecord[];
    readonly silences: readonly Silence[];
    readonly deliveries: readonly Delivery[];
  };
  /** Active and past alarms, newest first. */
  readonly latest: (limit: number) => readonly AlarmRecord[];
  readonly saveAlarm: (record: AlarmRecord) => void;
  readonly saveSilence: (silence: Silence) => void;
  readonly saveDelivery: (delivery: Delivery) => void;
  readonly removeDelivery: (id: string) => void;
}

/** Reads and writes the tables above. */
export function openAlarmStore(db: DatabaseSync): AlarmStore {
  const unfinished = db.prepare(
    `SELECT * FROM alarms WHERE cleared_at IS NULL OR (told <> '{}' AND alarm ->> '$.level' <> 'notice') ORDER BY raised_at`,
  );
  const latest = db.prepare(
    "SELECT * FROM alarms ORDER BY raised_at DESC LIMIT ?",
  );
  const inForce = db.prepare(
    "SELECT * FROM silences WHERE until_at > ? ORDER BY from_at",
  );
  const waiting = db.prepare("SELECT * FROM alert_outbox ORDER BY rowid");
  const putAlarm = db.prepare(
    `INSERT INTO alarms (id, fingerprint, raised_at, cleared_at, alarm, told) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET cleared_at = excluded.cleared_at, alarm = excluded.alarm, told = excluded.told`,
  );
  const putSilence = db.prepare(
    `INSERT INTO silences (id, pattern, why, from_at, until_at) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET until_at = excluded.until_at`,
  );
  const putDelivery = db.prepare(
    `INSERT INTO alert_outbox (id, sink, message, attempts, next_at) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET attempts = excluded.attempts, next_at = excluded.next_at`,
  );
  const dropDelivery = db.prepare("DELETE FROM alert_outbox WHERE id = ?");
  return {
    load: (now) => ({
      alarms: unfinished.all().map(alarmOf),
      silences: inForce.all(now).map(silenceFrom),
      deliveries: waiting.all().map(deliveryOf),
    }),
    latest: (limit) => latest.all(limit).map(alarmOf),
    saveAlarm: ({ id, raisedAt, clearedAt, alarm, notified }) => {
      putAlarm.run(
        id,
        alarm.fingerprint,
        raisedAt,
        clearedAt,
        JSON.stringify(alarm),
        JSON.stringify(notified),
      );
    },
    saveSilence: ({ id, pattern, why, from, until }) => {
      putSilence.run(id, pattern, why, from, until);
    },
    saveDelivery: ({ id, sink, message, attempts, nextAt }) => {
      putDelivery.run(id, sink, JSON.stringify(message), attempts, nextAt);
    },
    removeDelivery: (id) => {
      dropDelivery.run(id);
    },
  };
}

type Row = Readonly<Record<string, unknown>>;

function alarmOf(row: Row): AlarmRecord {
  return {
    id: String(row["id"]),
    raisedAt: Number(row["raised_at"]),
    clearedAt: row["cleared_at"] === null ? null : Number(row["cleared_at"]),
    alarm: JSON.parse(String(row["alarm"])) as Alarm,
    notified: JSON.parse(String(row["told"])) as AlarmRecord["notified"],
  };
}

function silenceFrom(row: Row): Silence {
  return {
    id: String(row["id"]),
    pattern: String(row["pattern"]),
    why: String(row["why"]),
    from: Number(row["from_at"]),
    until: Number(row["until_at"]),
  };
}

function deliveryOf(row: Row): Delivery {
  return {
    id: String(row["id"]),
    sink: String(row["sink"]),
    message: JSON.parse(String(row["message"])) as AlertMessage,
    attempts: Number(row["attempts"]),
    nextAt: Number(row["next_at"]),
  };
}
