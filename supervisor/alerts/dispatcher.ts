import { randomUUID } from "node:crypto";
import { DAY_MS } from "../../core/duration.ts";
import { textOf } from "../../core/failure.ts";
import type { AlarmStore, Delivery } from "./alarm-store.ts";
import type { AlertMessage } from "./message.ts";
import type { Sink } from "./sinks/sink.ts";

interface DispatcherOptions {
  readonly sinks: readonly Sink[];
  readonly store: AlarmStore;
  /** Pending messages of the previous process. */
  readonly deliveries: readonly Delivery[];
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** A sink has failed often enough to raise an alarm, or has delivered a message (null): the alarm may be of the previous process. */
  readonly onSink: (name: string, trouble: string | null) => void;
  readonly onNotice: (sentence: string) => void;
}

export interface SinkState {
  readonly name: string;
  readonly waiting: number;
  /** Milliseconds since 1970; null if nothing was delivered since the supervisor started. */
  readonly deliveredAt: number | null;
  /** The error of the last failure; null after a delivery. */
  readonly trouble: string | null;
}

const SEND_TIMEOUT_MS = 15_000;
const FIRST_RETRY_MS = 5000;
const MAX_RETRY_MS = 600_000;
/** Failed attempts before a message goes to the fallback sinks and an alarm is raised. */
const ATTEMPTS_BEFORE_ALARM = 3;
/** Older messages are of no use. */
const MAX_AGE_MS = DAY_MS;

interface SinkQueue {
  readonly sink: Sink;
  queue: readonly Delivery[];
  trouble: string | null;
  deliveredAt: number | null;
  running: Promise<void> | undefined;
}

/** Delivers messages to sinks, in order, with growing delays between attempts and fallback sinks; queues persist across restarts. */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #stopping = new AbortController();
  readonly #lines: ReadonlyMap<string, SinkQueue>;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#lines = new Map(
      options.sinks.map((sink) => [
        sink.name,
        {
          sink,
          queue: options.deliveries.filter((each) => each.sink === sink.name),
          trouble: null,
          deliveredAt: null,
          running: undefined,
        },
      ]),
    );
    for (const { id, sink } of options.deliveries) {
      if (!this.#lines.has(sink)) {
        this.#quietly(() => options.store.removeDelivery(id));
      }
    }
  }

  enqueue(name: string, message: AlertMessage): void {
    const line = this.#lines.get(name);
    if (line === undefined) {
      return;
    }
    const delivery: Delivery = {
      id: randomUUID(),
      sink: name,
      message,
      attempts: 0,
      nextAt: this.#options.now(),
    };
    line.queue = [...line.queue, delivery];
    this.#quietly(() => this.#options.store.saveDelivery(delivery));
  }

  /** Sends what is due, or everything if `immediately`, in order per sink, or only through the named one. Resolves when all attempts have ended. */
  async dispatch({
    immediately = false,
    only,
  }: {
    readonly immediately?: boolean;
    readonly only?: string | undefined;
  } = {}): Promise<void> {
    const lines = [...this.#lines.values()].filter(
      ({ sink }) => only === undefined || sink.name === only,
    );
    await Promise.all(
      lines.map((line) => {
        line.running ??= this.#drain(line, immediately).finally(() => {
          line.running = undefined;
        });
        return line.running;
      }),
    );
  }

  states(): readonly SinkState[] {
    return [...this.#lines.values()].map(
      ({ sink, queue, deliveredAt, trouble }) => ({
        name: sink.name,
        waiting: queue.length,
        deliveredAt,
        trouble,
      }),
    );
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#lines.values()].map(({ running }) => running));
  }

  async #drain(line: SinkQueue, immediately: boolean): Promise<void> {
    for (;;) {
      const [first] = line.queue;
      if (first === undefined) {
        return;
      }
      const wait = first.nextAt - this.#options.now();
      // A longer wait than the maximum means that the clock was set back.
      if (wait > 0 && wait <= MAX_RETRY_MS && !immediately) {
        return;
      }
      try {
        await this.#send(line.sink, first.message);
      } catch (error) {
        if (!this.#stopping.signal.aborted) {
          this.#onFailed(line, first, textOf(error));
        }
        return;
      }
      this.#onDelivered(line, first);
    }
  }

  /** Rejects at the deadline even if the sink ignores the signal. */
  async #send(sink: Sink, message: AlertMessage): Promise<void> {
    const limit = new AbortController();
    const end = () => limit.abort();
    const timer = setTimeout(end, SEND_TIMEOUT_MS);
    this.#stopping.signal.addEventListener("abort", end, { once: true });
    const late = Promise.withResolvers<never>();
    limit.signal.addEventListener("abort", () =>
      late.reject(new Error(`no answer within ${SEND_TIMEOUT_MS / 1000} s`)),
    );
    try {
      await Promise.race([sink.send(message, limit.signal), late.promise]);
    } finally {
      clearTimeout(timer);
      this.#stopping.signal.removeEventListener("abort", end);
    }
  }

  #onDelivered(line: SinkQueue, delivery: Delivery): void {
    line.deliveredAt = this.#options.now();
    line.trouble = null;
    this.#dequeue(line, delivery);
    this.#options.onSink(line.sink.name, null);
  }

  #onFailed(line: SinkQueue, delivery: Delivery, trouble: string): void {
    const { now, onSink, onNotice, store } = this.#options;
    const attempts = delivery.attempts + 1;
    line.trouble = trouble;
    if (attempts === ATTEMPTS_BEFORE_ALARM) {
      onSink(line.sink.name, trouble);
      if (this.#handOver(line, delivery)) {
        return this.#dequeue(line, delivery);
      }
    }
    if (now() - delivery.message.at > MAX_AGE_MS) {
      onNotice(
        `an alert could not be delivered through ${line.sink.name} within a day and was dropped: ${trouble}`,
      );
      return this.#dequeue(line, delivery);
    }
    const wait = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** (attempts - 1));
    const next = { ...delivery, attempts, nextAt: now() + wait };
    line.queue = [next, ...line.queue.slice(1)];
    this.#quietly(() => store.saveDelivery(next));
  }

  #dequeue(line: SinkQueue, delivery: Delivery): void {
    line.queue = line.queue.slice(1);
    this.#quietly(() => this.#options.store.removeDelivery(delivery.id));
  }

  /** Gives a message to the fallback sinks; false if there are none. */
  #handOver(line: SinkQueue, delivery: Delivery): boolean {
    // A user's own message is for no other channel.
    if (line.sink.fallback || delivery.message.owner !== undefined) {
      return false;
    }
    const fallbacks = this.#options.sinks.filter(({ fallback }) => fallback);
    for (const { name } of fallbacks) {
      this.enqueue(name, delivery.message);
    }
    return fallbacks.length > 0;
  }

  /** A full disk must not silence alerts: messages that cannot be written are delivered from memory. */
  #quietly(write: () => void): void {
    try {
      write();
    } catch (error) {
      this.#options.onNotice(
        `cannot write the queue of alerts: ${textOf(error)}`,
      );
    }
  }
}
