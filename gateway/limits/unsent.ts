import { LEASE_MS, type CounterParts } from "./limits.ts";
import type { Counters, PendingCounter } from "./counters.ts";
import type { OwnParts } from "./redis-link.ts";
import { assignArguments, partsArguments } from "./wire.ts";

/** What changed here and may not have arrived in Redis; the next arrival carries it there. */
export interface Unsent {
  /** A call that is over, or was given up, and may still hold a lease in Redis. */
  over(callId: string): void;
  /** A counter's pending sum; with the ledger's total where that changed too. */
  changed(part: CounterParts | PendingCounter): void;
  /** Everything that this instance knows of itself, to be sent now. */
  take(): OwnParts;
}

/** Within a heartbeat the other instances have heard of a total. */
const RECENT_MS = 5_000;

export function createUnsent(counters: Counters, now: () => number): Unsent {
  /** With when they ended: a lease in Redis outlives its call by 60 s at most. */
  let over = new Map<string, number>();
  let parts = new Map<string, CounterParts | PendingCounter>();

  /** A total is not replaced by an older one, nor by a pending sum alone: that is read anew when it is sent. */
  function changed(part: CounterParts | PendingCounter): void {
    const name = nameOf(part);
    const known = parts.get(name);
    const keeps =
      known !== undefined &&
      "version" in known &&
      (!("version" in part) || part.version < known.version);
    if (!keeps) {
      parts.set(name, part);
    }
  }

  return {
    over(callId) {
      const at = now();
      for (const [old, since] of over) {
        if (at - since <= LEASE_MS) {
          break;
        }
        over.delete(old);
      }
      over.set(callId, at);
    },
    changed,
    take() {
      const [overNow, partsNow] = [over, parts];
      [over, parts] = [new Map(), new Map()];
      const pending = [...counters.allPending()];
      const totals: CounterParts[] = [];
      for (const part of partsNow.values()) {
        const { entity, window } = part;
        const sum = counters.pendingOf(entity, window);
        if (sum === 0) {
          pending.push({ entity, window, pending: 0 });
        }
        if ("version" in part) {
          totals.push({ ...part, pending: sum });
        }
      }
      // What others heard of them may be lost with Redis.
      totals.push(...counters.recentTotals(RECENT_MS));
      const held = [...counters.allHeld()];
      const ended = overNow
        .keys()
        .filter((callId) => counters.held(callId) === undefined);
      return {
        parts: partsArguments([...ended], pending, held, now()),
        totals: assignArguments(totals, () => "-"),
        failed() {
          over = new Map([...overNow, ...over]);
          for (const part of partsNow.values()) {
            changed(part);
          }
        },
      };
    },
  };
}

/** One name for a counter. */
export function nameOf(counter: {
  readonly entity: string;
  readonly window: string;
}): string {
  return `${counter.entity}\n${counter.window}`;
}
