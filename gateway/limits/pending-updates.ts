import { LEASE_MS, type CounterParts } from "./limits.ts";
import type { Counters, PendingCounter } from "./counters.ts";
import type { OwnParts } from "./redis-link.ts";
import { RecentCalls } from "./recent-calls.ts";
import { assignArguments, partsArguments } from "./script-arguments.ts";

/**
 * Within a heartbeat the other instances have received a total, and a Redis that returns with an older state has lost a second
 * or two.
 */
const RECENT_MS = 5_000;

/** Changes that may not have arrived in Redis, or that it may have lost; sent when the link rejoins. */
export class PendingUpdates {
  readonly #counters: Counters;
  readonly #now: () => number;
  /** A lease in Redis outlives its call by at most 60 s. */
  #over = new RecentCalls(LEASE_MS);
  /** Calls whose end has arrived within the last seconds. */
  readonly #ended = new RecentCalls(RECENT_MS);
  /** Calls whose end is on its way to Redis. */
  readonly #ending = new Set<string>();
  /** When Redis became unavailable; null: it is available. */
  #awaySince: number | null = null;
  #parts = new Map<string, CounterParts | PendingCounter>();

  constructor(counters: Counters, now: () => number) {
    this.#counters = counters;
    this.#now = now;
  }

  /** A call whose end is sent now; `over` or `ended` follows. */
  ending(callId: string): void {
    this.#ending.add(callId);
  }

  /** A call that is over, or was given up, and may still hold a lease in Redis. */
  over(callId: string): void {
    this.#ending.delete(callId);
    this.#over.add(callId, this.#now());
  }

  /** A call whose end has arrived in Redis. */
  ended(callId: string): void {
    this.#ending.delete(callId);
    this.#ended.add(callId, this.#now());
  }

  /** Redis is unavailable: however long that lasts, it may return as it was shortly before. */
  wentAway(): void {
    this.#awaySince ??= this.#now();
  }

  arrived(): void {
    this.#awaySince = null;
  }

  /** A counter's pending sum; with the ledger's total where that changed too. */
  changed(part: CounterParts | PendingCounter): void {
    const name = nameOf(part);
    const known = this.#parts.get(name);
    const keeps =
      known !== undefined &&
      "version" in known &&
      (!("version" in part) || part.version < known.version);
    if (!keeps) {
      this.#parts.set(name, part);
    }
  }

  /** The complete state of this instance, to be sent now. */
  take(): OwnParts {
    const [overNow, partsNow] = [this.#over, this.#parts];
    [this.#over, this.#parts] = [new RecentCalls(LEASE_MS), new Map()];
    const pending = [...this.#counters.allPending()];
    const totals: CounterParts[] = [];
    for (const part of partsNow.values()) {
      const { entity, window } = part;
      const sum = this.#counters.pendingOf(entity, window);
      if (sum === 0) {
        pending.push({ entity, window, pending: 0 });
      }
      if ("version" in part) {
        totals.push({ ...part, pending: sum });
      }
    }
    // The copies that other instances received may be lost with Redis.
    const lostFrom = (this.#awaySince ?? this.#now()) - RECENT_MS;
    totals.push(...this.#counters.totalsSince(lostFrom));
    const held = [...this.#counters.allReserved()];
    const ended = [
      ...overNow.ids(),
      ...this.#ended.ids(),
      ...this.#ending,
    ].filter((callId) => this.#counters.held(callId) === undefined);
    return {
      parts: partsArguments(ended, pending, held, this.#now()),
      totals: assignArguments(totals, () => "-"),
      failed: () => {
        this.#over.putBefore(overNow);
        for (const part of partsNow.values()) {
          this.changed(part);
        }
      },
    };
  }
}

/** One name for a counter. */
export function nameOf(counter: {
  readonly entity: string;
  readonly window: string;
}): string {
  return `${counter.entity}\n${counter.window}`;
}
