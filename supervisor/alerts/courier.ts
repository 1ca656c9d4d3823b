import { randomUUID } from "node:crypto";
import { textOf } from "../../core/failure.ts";
import type { AlarmStore, Delivery } from "./alarm-store.ts";
import type { AlertMessage } from "./message.ts";
import type { Sink } from "./sinks/sink.ts";

export interface CourierOptions {
  readonly sinks: readonly Sink[];
  readonly store: AlarmStore;
  /** What an earlier supervisor had not delivered. */
  readonly deliveries: readonly Delivery[];
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** A sink failed often enough to be worth telling; or works again (null). */
  readonly onSink: (name: string, trouble: string | null) => void;
  readonly onNotice: (sentence: string) => void;
}

/** How one sink does. */
export interface SinkState {
  readonly name: string;
  readonly waiting: number;
  /** Milliseconds since 1970; null when nothing was delivered since the supervisor began. */
  readonly deliveredAt: number | null;
  /** The words of the last failure; null once something was delivered. */
  readonly trouble: string | null;
}

export interface Courier {
  readonly post: (sink: string, message: AlertMessage) => void;
  /** Tries what is due (hurried: all), each sink's messages in order. Resolves when all tries have ended. */
  readonly carry: (hurry?: boolean) => Promise<void>;
  readonly states: () => readonly SinkState[];
  readonly stop: () => Promise<void>;
}

const SEND_WITHIN_MS = 15_000;
const FIRST_WAIT_MS = 5000;
const LONGEST_WAIT_MS = 600_000;
/** Failed tries before another sink gets the message, and before the trouble itself is told. */
const TRIES_BEFORE_TROUBLE = 3;
/** A message that is older helps nobody. */
const KEEP_MS = 86_400_000;

interface Line {
  readonly sink: Sink;
  queue: readonly Delivery[];
  trouble: string | null;
  deliveredAt: number | null;
  running: Promise<void> | undefined;
}

/** Brings messages to their sinks: tries again with growing waits, then leaves it to the fallback sinks; nothing is lost by a restart. */
export function startCourier(options: CourierOptions): Courier {
  const { store, now } = options;
  const stopping = new AbortController();
  const lines = new Map<string, Line>(
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
    if (!lines.has(sink)) {
      quietly(() => store.removeDelivery(id));
    }
  }

  /** A full disk must not silence alerts: what cannot be kept is carried from memory. */
  function quietly(write: () => void): void {
    try {
      write();
    } catch (error) {
      options.onNotice(`the outbox cannot be written: ${textOf(error)}`);
    }
  }

  function post(name: string, message: AlertMessage): void {
    const line = lines.get(name);
    if (line === undefined) {
      return;
    }
    const delivery: Delivery = {
      id: randomUUID(),
      sink: name,
      message,
      attempts: 0,
      nextAt: now(),
    };
    line.queue = [...line.queue, delivery];
    quietly(() => store.saveDelivery(delivery));
  }

  /** A sink that does not heed the signal is not waited for either. */
  async function send(sink: Sink, message: AlertMessage): Promise<void> {
    const limit = new AbortController();
    const end = () => limit.abort();
    const timer = setTimeout(end, SEND_WITHIN_MS);
    stopping.signal.addEventListener("abort", end, { once: true });
    const late = Promise.withResolvers<never>();
    limit.signal.addEventListener("abort", () =>
      late.reject(new Error(`no answer within ${SEND_WITHIN_MS / 1000} s`)),
    );
    try {
      await Promise.race([sink.send(message, limit.signal), late.promise]);
    } finally {
      clearTimeout(timer);
      stopping.signal.removeEventListener("abort", end);
    }
  }

  async function carryOne(line: Line, hurry: boolean): Promise<void> {
    for (;;) {
      const [first] = line.queue;
      if (first === undefined) {
        return;
      }
      const wait = first.nextAt - now();
      // No wait is longer: the clock was set back.
      if (wait > 0 && wait <= LONGEST_WAIT_MS && !hurry) {
        return;
      }
      try {
        await send(line.sink, first.message);
      } catch (error) {
        if (!stopping.signal.aborted) {
          failed(line, first, textOf(error));
        }
        return;
      }
      delivered(line, first);
    }
  }

  function delivered(line: Line, delivery: Delivery): void {
    line.deliveredAt = now();
    const wasInTrouble = line.trouble !== null;
    line.trouble = null;
    leave(line, delivery);
    if (wasInTrouble) {
      options.onSink(line.sink.name, null);
    }
  }

  function failed(line: Line, delivery: Delivery, words: string): void {
    const attempts = delivery.attempts + 1;
    line.trouble = words;
    if (attempts === TRIES_BEFORE_TROUBLE) {
      options.onSink(line.sink.name, words);
      if (handOver(line, delivery)) {
        return leave(line, delivery);
      }
    }
    if (now() - delivery.message.at > KEEP_MS) {
      options.onNotice(
        `an alert could not be delivered by ${line.sink.name} within a day and is given up: ${words}`,
      );
      return leave(line, delivery);
    }
    const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempts - 1));
    const next = { ...delivery, attempts, nextAt: now() + wait };
    line.queue = [next, ...line.queue.slice(1)];
    quietly(() => store.saveDelivery(next));
  }

  function leave(line: Line, delivery: Delivery): void {
    line.queue = line.queue.slice(1);
    quietly(() => store.removeDelivery(delivery.id));
  }

  function handOver(line: Line, delivery: Delivery): boolean {
    if (line.sink.fallback) {
      return false;
    }
    const fallbacks = options.sinks.filter(({ fallback }) => fallback);
    for (const { name } of fallbacks) {
      post(name, delivery.message);
    }
    return fallbacks.length > 0;
  }

  return {
    post,
    carry: async (hurry = false) => {
      await Promise.all(
        [...lines.values()].map((line) => {
          line.running ??= carryOne(line, hurry).finally(() => {
            line.running = undefined;
          });
          return line.running;
        }),
      );
    },
    states: () =>
      [...lines.values()].map(({ sink, queue, deliveredAt, trouble }) => ({
        name: sink.name,
        waiting: queue.length,
        deliveredAt,
        trouble,
      })),
    stop: async () => {
      stopping.abort();
      await Promise.all([...lines.values()].map(({ running }) => running));
    },
  };
}
