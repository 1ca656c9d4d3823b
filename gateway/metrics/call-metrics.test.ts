import { expect, test } from "vitest";
import { createCallMetrics } from "./call-metrics.ts";
import { counted } from "./family.ts";

test("counts of aliases with any characters are separate series with their own labels", () => {
  const metrics = createCallMetrics(10, null);
  metrics.hedged("a|b", "first");
  metrics.hedged("a|c", "first");
  expect(counted(metrics.hedges, "alias", "answered")()).toEqual([
    [{ alias: "a|b", answered: "first" }, 1],
    [{ alias: "a|c", answered: "first" }, 1],
  ]);
});
