import { Counters } from "./counters.ts";
import { ReleaseWaits } from "./release-waits.ts";
import type { Limits } from "./limits.ts";
import { InstanceUnknown } from "./instances.ts";

interface MemoryLimitsOptions {
  /** Milliseconds of a monotonic clock: a clock that is set neither ends nor prolongs a call's reservation. */
  readonly now?: () => number;
}

/** The limits of a gateway that runs alone, in its own process. */
export function createMemoryLimits(options: MemoryLimitsOptions = {}): Limits {
  const { now = () => performance.now() } = options;
  const counters = new Counters(now);
  const waits = new ReleaseWaits();
  return {
    kind: "memory",
    async admit(call) {
      const admission = counters.admit(call);
      if (call.mayLower === true) {
        waits.released(call.entities.map(({ entity }) => entity));
      }
      return admission;
    },
    look: async (entities) => counters.look(entities),
    async settle(call) {
      waits.released(counters.settle(call));
    },
    async renew(callIds) {
      counters.renew(callIds);
    },
    async assign(parts) {
      counters.assign(parts, false);
    },
    async forgetTotals() {
      counters.forgetTotals();
    },
    remember: (parts) => counters.assign(parts, false),
    lastKnown: (entity, window) => counters.lastKnown(entity, window),
    mode: () => "memory",
    counts: () => ({
      outages: 0,
      arrivals: 0,
      instances: 1,
      expiredLeases: counters.reapedLeases(),
      servedAway: 0,
      rejectedAway: 0,
    }),
    async forgetInstance(gone) {
      throw new InstanceUnknown(
        `Instance "${gone}" not found: without Redis there is only this one.`,
      );
    },
    instances: async () => [],
    previousProcessDrained() {},
    released: (entity, ms) => waits.wait(entity, ms),
    async close() {},
  };
}
