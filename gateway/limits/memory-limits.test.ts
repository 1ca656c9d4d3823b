import { createMemoryLimits } from "./memory-limits.ts";
import { describeRules } from "./testing/rules.ts";

describeRules("limits in process", async () => {
  let now = 1_000_000;
  return {
    store: createMemoryLimits({ now: () => now }),
    advance(ms) {
      now += ms;
    },
    async close() {},
  };
});
