import { randomUUID } from "node:crypto";
import { textOf } from "../../core/failure.ts";
import { isOpen, isWithin } from "../moments.ts";
import type { Alarm, Alarms } from "./alarm.ts";
import type { AlarmRecord, AlarmStore } from "./alarm-store.ts";
import { startCourier, type SinkState } from "./courier.ts";
import type { AlertEvent, AlertEventKind } from "./message.ts";
import { silenceOf, type Silence } from "./silence.ts";
import type { Sink } from "./sinks/sink.ts";

export interface AlertingOptions {
  readonly store: AlarmStore;
  readonly sinks: readonly Sink[];
  /** The machine's name, in every message. */
  readonly host: string;
  /** The zone of the times in messages. */
  readonly timeZone: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly onNotice: (sentence: string) => void;
  readonly onRaised?: (alarm: Alarm) => void;
  readonly onCleared?: (alarm: Alarm) => void;
}

export type ActiveAlarm = Alarm & {
  /** Milliseconds since 1970. */
  readonly since: number;
  readonly silence: Silence | null;
};

export type Alerting = Alarms & {
  /** What is raised now, the oldest first. */
  readonly active: () => readonly ActiveAlarm[];
  /** Begins a silence from now on. */
  readonly silence: (pattern: string, forMs: number, why: string) => Silence;
  /** Those in force. */
  readonly silences: () => readonly Silence[];
  /** Ends every silence with this id or pattern; returns them. */
  readonly endSilences: (idOrPattern: string) => readonly Silence[];
  readonly sinks: () => readonly SinkState[];
  /** Sends a message through every sink, the fallbacks too, that says it is a test. */
  readonly test: () => Promise<readonly SinkState[]>;
  /** Does what is due: groups, reminds, delivers. */
  readonly advance: () => Promise<void>;
  readonly stop: () => Promise<void>;
};

/** Events that come within this time are told in one message; what is over before is not told at all. */
const GROUP_MS = 30_000;

/** Keeps what is wrong and tells it: one event for each beginning and end, grouped, with reminders; silences keep it quiet. */
export function startAlerting(options: AlertingOptions): Alerting {
  const { store, now } = options;
  const loaded = store.load(now());
  const active = new Map<string, AlarmRecord>();
  /** Over, and somebody who was told of it is yet to hear so. */
  const ending = new Map<string, AlarmRecord>();
  let silences = loaded.silences;
  const names = new Set(options.sinks.map(({ name }) => name));
  for (const kept of loaded.alarms) {
    const told = Object.fromEntries(
      Object.entries(kept.told).filter(([name]) => names.has(name)),
    );
    const record = { ...kept, told };
    if (isOfLostSink(record.alarm, names)) {
      continue;
    }
    if (record.clearedAt === null) {
      active.set(record.alarm.fingerprint, record);
    } else if (Object.keys(told).length > 0) {
      ending.set(record.alarm.fingerprint, record);
    }
  }
  const courier = startCourier({
    sinks: options.sinks,
    store,
    deliveries: loaded.deliveries,
    now,
    onSink: (name, trouble) =>
      trouble === null
        ? clear(sinkFingerprint(name))
        : raise(sinkAlarm(name, trouble)),
    onNotice: options.onNotice,
  });

  /** A full disk must not silence alerts. */
  function save(record: AlarmRecord): void {
    try {
      store.saveAlarm(record);
    } catch (error) {
      options.onNotice(`an alarm cannot be written: ${textOf(error)}`);
    }
  }

  function raise(alarm: Alarm): void {
    const { fingerprint } = alarm;
    const before = active.get(fingerprint) ?? ending.get(fingerprint);
    if (before?.clearedAt === null && isSame(before.alarm, alarm)) {
      return;
    }
    const record: AlarmRecord =
      before === undefined
        ? {
            id: randomUUID(),
            raisedAt: now(),
            alarm,
            clearedAt: null,
            told: {},
          }
        : { ...before, alarm, clearedAt: null };
    ending.delete(fingerprint);
    active.set(fingerprint, record);
    save(record);
    if (before === undefined || before.clearedAt !== null) {
      options.onRaised?.(alarm);
    }
  }

  function clear(fingerprint: string): void {
    const record = active.get(fingerprint);
    if (record === undefined) {
      return;
    }
    const over = { ...record, clearedAt: now() };
    active.delete(fingerprint);
    if (Object.keys(over.told).length > 0) {
      ending.set(fingerprint, over);
    }
    save(over);
    options.onCleared?.(over.alarm);
  }

  function tell(sink: Sink): void {
    const at = now();
    const heard = (record: AlarmRecord) => record.told[sink.name] !== undefined;
    const audible = [...active.values()].filter(
      ({ alarm }) =>
        alarm.fingerprint !== sinkFingerprint(sink.name) &&
        silenceOf(silences, alarm, at) === undefined,
    );
    const news = audible.filter((record) => !heard(record));
    const over = [...ending.values()].filter(heard);
    const reminders = audible.filter(
      ({ told }) => !isWithin(told[sink.name] ?? at, sink.remindMs, at),
    );
    const oldest = Math.min(
      ...news.map(({ raisedAt }) => raisedAt),
      ...over.map(({ clearedAt }) => clearedAt ?? at),
    );
    if (reminders.length === 0 && isWithin(oldest, GROUP_MS, at)) {
      return;
    }
    if (news.length + over.length + reminders.length === 0) {
      return;
    }
    courier.post(sink.name, {
      id: randomUUID(),
      at,
      host: options.host,
      timeZone: options.timeZone,
      events: [
        ...news.map((record) => eventOf("raised", record)),
        ...reminders.map((record) => eventOf("reminder", record)),
        ...over.map((record) => eventOf("resolved", record)),
      ],
    });
    for (const record of [...news, ...reminders]) {
      const told = { ...record.told, [sink.name]: at };
      change(active, { ...record, told });
    }
    for (const record of over) {
      const { [sink.name]: _, ...told } = record.told;
      change(ending, { ...record, told });
      if (Object.keys(told).length === 0) {
        ending.delete(record.alarm.fingerprint);
      }
    }
  }

  function change(
    records: Map<string, AlarmRecord>,
    record: AlarmRecord,
  ): void {
    records.set(record.alarm.fingerprint, record);
    save(record);
  }

  function saveSilence(silence: Silence): void {
    store.saveSilence(silence);
    silences = [
      ...silences.filter(({ id }) => id !== silence.id),
      silence,
    ].filter(({ until }) => until > now());
  }

  return {
    raise,
    clear,
    active: () =>
      [...active.values()]
        .toSorted((a, b) => a.raisedAt - b.raisedAt)
        .map(({ alarm, raisedAt }) => ({
          ...alarm,
          since: raisedAt,
          silence: silenceOf(silences, alarm, now()) ?? null,
        })),
    silence: (pattern, forMs, why) => {
      const from = now();
      const id = randomUUID().slice(0, 8);
      const silence = { id, pattern, why, from, until: from + forMs };
      saveSilence(silence);
      return silence;
    },
    silences: () => silences.filter((silence) => isOpen(silence, now())),
    endSilences: (idOrPattern) => {
      const ended = silences
        .filter(
          ({ id, pattern, until }) =>
            until > now() && [id, pattern].includes(idOrPattern),
        )
        .map((silence) => ({ ...silence, until: now() }));
      ended.forEach(saveSilence);
      return ended;
    },
    sinks: courier.states,
    test: async () => {
      const message = {
        id: randomUUID(),
        at: now(),
        host: options.host,
        timeZone: options.timeZone,
        events: [eventOf("raised", testRecord(now()))],
      };
      for (const { name } of options.sinks) {
        courier.post(name, message);
      }
      await courier.carry(true);
      return courier.states();
    },
    advance: async () => {
      for (const sink of options.sinks) {
        if (!sink.fallback) {
          tell(sink);
        }
      }
      await courier.carry();
    },
    stop: courier.stop,
  };
}

function eventOf(event: AlertEventKind, record: AlarmRecord): AlertEvent {
  return {
    event,
    alarm: record.alarm,
    since: record.raisedAt,
    until: record.clearedAt,
  };
}

function isSame(a: Alarm, b: Alarm): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function sinkFingerprint(name: string): string {
  return `sink:${name}`;
}

/** A way to tell that is configured no more has no trouble any more. */
function isOfLostSink(alarm: Alarm, names: ReadonlySet<string>): boolean {
  const { fingerprint } = alarm;
  return (
    fingerprint.startsWith("sink:") &&
    ![...names].some((name) => sinkFingerprint(name) === fingerprint)
  );
}

function sinkAlarm(name: string, trouble: string): Alarm {
  return {
    fingerprint: sinkFingerprint(name),
    level: "warning",
    subject: `alerts by ${name}`,
    text: "alerts cannot be delivered this way; they are kept and tried again",
    output: trouble,
    command: "hearth alerts --test",
  };
}

function testRecord(now: number): AlarmRecord {
  const alarm: Alarm = {
    fingerprint: "test",
    level: "warning",
    subject: "test",
    text: "somebody asked for a test message; nothing is wrong",
    command: "hearth status",
  };
  return { id: randomUUID(), raisedAt: now, alarm, clearedAt: null, told: {} };
}
