import { randomUUID } from "node:crypto";
import { textOf } from "../../core/failure.ts";
import { isOpen, isWithin } from "../../core/clock-jumps.ts";
import type { Alarm, ReplacedAlarms } from "./alarm.ts";
import type { AlarmRecord, AlarmStore } from "./alarm-store.ts";
import { Dispatcher, type SinkState } from "./dispatcher.ts";
import type { AlertEvent, AlertEventKind, AlertMessage } from "./message.ts";
import { silenceOf, type Silence } from "./silence.ts";
import type { Sink } from "./sinks/sink.ts";

interface AlertingOptions {
  readonly store: AlarmStore;
  readonly sinks: readonly Sink[];
  /** Name of the machine, in every message. */
  readonly host: string;
  /** The zone of the times in messages. */
  readonly timeZone: string;
  /** Address of the console, in every message to operators. */
  readonly consoleUrl?: string | undefined;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly onNotice: (sentence: string) => void;
  readonly onRaised?: (alarm: Alarm) => void;
  readonly onCleared?: (alarm: Alarm) => void;
}

export type ActiveAlarm = Alarm & {
  readonly level: "down" | "warning";
  /** Milliseconds since 1970. */
  readonly since: number;
  readonly silence: Silence | null;
};

/** Events within this time are grouped into one message; alarms cleared within it are not reported. */
const GROUP_MS = 30_000;

/**
 * Keeps the active alarms and reports each start and end once per sink, grouped, with reminders, unless silenced. Starts with the
 * alarms, silences and messages of the previous process.
 */
export class Alerting implements ReplacedAlarms {
  readonly #options: AlertingOptions;
  readonly #active = new Map<string, AlarmRecord>();
  /** Cleared, but the end is not reported to all sinks yet. */
  readonly #ending = new Map<string, AlarmRecord>();
  readonly #dispatcher: Dispatcher;
  #silences: readonly Silence[];

  constructor(options: AlertingOptions) {
    const { store, sinks, now, onNotice } = options;
    const { alarms, silences, deliveries } = store.load(now());
    this.#options = options;
    this.#silences = silences;
    this.#restore(alarms);
    this.#dispatcher = new Dispatcher({
      sinks,
      store,
      deliveries,
      now,
      onNotice,
      onSink: (name, trouble) =>
        trouble === null
          ? this.clear(sinkFingerprint(name))
          : this.raise(sinkAlarm(name, trouble)),
    });
  }

  raise(alarm: Alarm): void {
    const { fingerprint } = alarm;
    const before =
      this.#active.get(fingerprint) ?? this.#ending.get(fingerprint);
    if (before?.clearedAt === null && isSame(before.alarm, alarm)) {
      return;
    }
    const record: AlarmRecord =
      before === undefined
        ? newRecord(alarm, this.#options.now())
        : { ...before, alarm, clearedAt: null };
    this.#ending.delete(fingerprint);
    this.#active.set(fingerprint, record);
    this.#save(record);
    if (before === undefined || before.clearedAt !== null) {
      this.#options.onRaised?.(alarm);
    }
  }

  clear(fingerprint: string): void {
    const record = this.#active.get(fingerprint);
    if (record === undefined) {
      return;
    }
    const over = { ...record, clearedAt: this.#options.now() };
    this.#active.delete(fingerprint);
    this.#save(over);
    if (over.alarm.level === "notice") {
      return;
    }
    if (Object.keys(over.notified).length > 0) {
      this.#ending.set(fingerprint, over);
    }
    this.#options.onCleared?.(over.alarm);
  }

  replace(prefix: string, found: readonly Alarm[]): void {
    this.retain(
      prefix,
      found.map(({ fingerprint }) => fingerprint),
    );
    found.forEach((alarm) => this.raise(alarm));
  }

  retain(prefix: string, fingerprints: readonly string[]): void {
    const kept = new Set(fingerprints);
    for (const fingerprint of this.#active.keys()) {
      if (fingerprint.startsWith(prefix) && !kept.has(fingerprint)) {
        this.clear(fingerprint);
      }
    }
  }

  /** The active alarms without notices, oldest first. */
  active(): readonly ActiveAlarm[] {
    return [...this.#active.values()]
      .toSorted((a, b) => a.raisedAt - b.raisedAt)
      .flatMap(({ alarm, raisedAt }) =>
        alarm.level === "notice"
          ? []
          : {
              ...alarm,
              level: alarm.level,
              since: raisedAt,
              silence:
                silenceOf(this.#silences, alarm, this.#options.now()) ?? null,
            },
      );
  }

  /** Active and past alarms, newest first. */
  history(limit: number): readonly AlarmRecord[] {
    return this.#options.store.latest(limit);
  }

  /** Silences matching alarms from now on. */
  silence(pattern: string, forMs: number, why: string): Silence {
    const from = this.#options.now();
    const id = randomUUID().slice(0, 8);
    const silence = { id, pattern, why, from, until: from + forMs };
    this.#saveSilence(silence);
    return silence;
  }

  /** The silences in force. */
  silences(): readonly Silence[] {
    return this.#silences.filter((each) => isOpen(each, this.#options.now()));
  }

  /** Ends every silence with this id or pattern; returns them. */
  endSilences(idOrPattern: string): readonly Silence[] {
    const now = this.#options.now();
    const ended = this.#silences
      .filter(
        ({ id, pattern, until }) =>
          until > now && [id, pattern].includes(idOrPattern),
      )
      .map((silence) => ({ ...silence, until: now }));
    for (const silence of ended) {
      this.#saveSilence(silence);
    }
    return ended;
  }

  sinks(): readonly SinkState[] {
    return this.#dispatcher.states();
  }

  /** Sends a test message through every sink, including fallbacks, or only through the named one. Returns the states of all. */
  async test(only?: string): Promise<readonly SinkState[]> {
    const at = this.#options.now();
    const record = newRecord(TEST_ALARM, at);
    const message = this.#message(at, [eventOf("raised", record)]);
    for (const { name } of this.#options.sinks) {
      if (only === undefined || name === only) {
        this.#dispatcher.enqueue(name, message);
      }
    }
    await this.#dispatcher.dispatch({ immediately: true, only });
    return this.sinks();
  }

  /** Groups, reminds and delivers what is due. */
  async advance(): Promise<void> {
    for (const sink of this.#options.sinks) {
      if (!sink.fallback) {
        this.#report(sink);
      }
    }
    await this.#dispatcher.dispatch();
  }

  stop(): Promise<void> {
    return this.#dispatcher.stop();
  }

  #restore(records: readonly AlarmRecord[]): void {
    const names = new Set(this.#options.sinks.map(({ name }) => name));
    for (const kept of records) {
      const notified = Object.fromEntries(
        Object.entries(kept.notified).filter(([name]) => names.has(name)),
      );
      const record = { ...kept, notified };
      if (record.clearedAt === null) {
        this.#active.set(record.alarm.fingerprint, record);
        if (isOfRemovedSink(record.alarm, names)) {
          this.clear(record.alarm.fingerprint);
        }
      } else if (Object.keys(notified).length > 0) {
        this.#ending.set(record.alarm.fingerprint, record);
      }
    }
  }

  /** Posts one message with what a sink has not reported yet, once the oldest event has waited for others. */
  #report(sink: Sink): void {
    const at = this.#options.now();
    const isReported = ({ notified }: AlarmRecord) =>
      notified[sink.name] !== undefined;
    const audible = [...this.#active.values()].filter(
      ({ alarm }) =>
        alarm.fingerprint !== sinkFingerprint(sink.name) &&
        silenceOf(this.#silences, alarm, at) === undefined,
    );
    const news = audible.filter((record) => !isReported(record));
    const over = [...this.#ending.values()].filter(isReported);
    const reminders = audible.filter(
      ({ alarm, notified }) =>
        alarm.level !== "notice" &&
        !isWithin(notified[sink.name] ?? at, sink.remindMs, at),
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
    const changes = [
      ...news.map((record) => eventOf("raised", record)),
      ...over.map((record) => eventOf("resolved", record)),
    ];
    const message = this.#message(at, [
      ...changes,
      ...reminders.map((record) => eventOf("reminder", record)),
    ]);
    this.#dispatcher.enqueue(sink.name, message);
    if (sink.owners) {
      const byOwner = Map.groupBy(changes, ({ alarm }) => alarm.owner);
      for (const [owner, events] of byOwner) {
        if (owner !== undefined) {
          const own = this.#message(at, events, owner);
          this.#dispatcher.enqueue(sink.name, own);
        }
      }
    }
    this.#markReported(sink.name, at, [...news, ...reminders], over);
  }

  #markReported(
    sink: string,
    at: number,
    raised: readonly AlarmRecord[],
    over: readonly AlarmRecord[],
  ): void {
    for (const record of raised) {
      const changed = {
        ...record,
        notified: { ...record.notified, [sink]: at },
      };
      this.#active.set(record.alarm.fingerprint, changed);
      this.#save(changed);
    }
    for (const record of over) {
      const { [sink]: _, ...notified } = record.notified;
      const changed = { ...record, notified };
      this.#ending.set(record.alarm.fingerprint, changed);
      this.#save(changed);
      if (Object.keys(notified).length === 0) {
        this.#ending.delete(record.alarm.fingerprint);
      }
    }
  }

  /** To operators, unless it has an owner. */
  #message(
    at: number,
    events: readonly AlertEvent[],
    owner?: string,
  ): AlertMessage {
    const { host, timeZone, consoleUrl } = this.#options;
    const message = { id: randomUUID(), at, host, timeZone, events };
    if (owner !== undefined) {
      return { ...message, owner };
    }
    return consoleUrl === undefined ? message : { ...message, consoleUrl };
  }

  /** A full disk must not silence alerts. */
  #save(record: AlarmRecord): void {
    try {
      this.#options.store.saveAlarm(record);
    } catch (error) {
      this.#options.onNotice(`cannot write an alarm: ${textOf(error)}`);
    }
  }

  #saveSilence(silence: Silence): void {
    this.#options.store.saveSilence(silence);
    this.#silences = [
      ...this.#silences.filter(({ id }) => id !== silence.id),
      silence,
    ].filter(({ until }) => until > this.#options.now());
  }
}

function newRecord(alarm: Alarm, now: number): AlarmRecord {
  return {
    id: randomUUID(),
    raisedAt: now,
    alarm,
    clearedAt: null,
    notified: {},
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

/** The alarm of a sink ends when the sink is removed from the configuration. */
function isOfRemovedSink(alarm: Alarm, names: ReadonlySet<string>): boolean {
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
    text: "alerts cannot be delivered through this channel; they are kept and retried",
    output: trouble,
    command: "hearth alerts test",
  };
}

const TEST_ALARM: Alarm = {
  fingerprint: "test",
  level: "warning",
  subject: "test",
  text: "this is a test message; nothing is wrong",
  command: "hearth status",
};
