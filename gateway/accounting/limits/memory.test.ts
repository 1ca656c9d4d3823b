import { createMemoryLimits } from "./memory.ts";
import { describeRules } from "./testing/rules.ts";

describeRules("limits in process", async () => {
  let now = 1_000_000;
  const cache = new Map<string, Buffer>();
  return {
    store: createMemoryLimits({
      now: () => now,
      lookup: (key) => cache.get(key) ?? null,
    }),
    advance(ms) {
      now += ms;
    },
    async cache(key, value) {
      cache.set(key, value);
    },
    async close() {},
  };
});
