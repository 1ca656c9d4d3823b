import { createCounters } from "./counters.ts";
import { createFreedWaits } from "./freed.ts";
import type { Limits } from "./limits.ts";
import { InstanceUnknown } from "./instances.ts";

export interface MemoryLimitsOptions {
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

/** The limits of a gateway that runs alone, in its own process. */
export function createMemoryLimits(options: MemoryLimitsOptions = {}): Limits {
  const { now = Date.now } = options;
  const counters = createCounters(now);
  const waits = createFreedWaits();
  return {
    kind: "memory",
    admit: async (call) => counters.admit(call),
    look: async (entities) => counters.look(entities),
    async settle(call) {
      waits.freed(counters.settle(call));
    },
    async renew(callIds) {
      counters.renew(callIds);
    },
    async assign(parts) {
      counters.assign(parts, false);
    },
    remember: (parts) => counters.assign(parts, false),
    lastKnown: counters.lastKnown,
    mode: () => "memory",
    counts: () => ({
      outages: 0,
      arrivals: 0,
      reapedLeases: counters.reapedLeases(),
      servedAway: 0,
      refusedAway: 0,
    }),
    async forgetInstance(gone) {
      throw new InstanceUnknown(
        `No instance "${gone}": without Redis a gateway knows no other one.`,
      );
    },
    instances: async () => [],
    formerLifeDrained() {},
    freed: waits.wait,
    async close() {},
  };
}
