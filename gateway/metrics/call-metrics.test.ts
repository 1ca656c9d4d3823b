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

test("combinations of models, teams and keys are bounded, and no call is lost", () => {
  const values = 10;
  const metrics = createCallMetrics(values, null);
  const calls = values ** 3;
  for (let call = 0; call < calls; call++) {
    metrics.ended({
      alias: `model-${call % values}`,
      provider: "openai",
      team: `team-${Math.floor(call / values) % values}`,
      keyAlias: `key-${Math.floor(call / values ** 2)}`,
      callType: "chat",
      status: "success",
      inputTokens: 1,
      outputTokens: 1,
      cost: 1,
      saved: 0,
      unpriced: false,
      durationMs: 1,
      firstTokenMs: null,
      addedMs: null,
    });
  }
  const sums = [...metrics.sums];
  expect(sums).toHaveLength(10 * values + values);
  expect(sums.reduce((sum, each) => sum + each.calls, 0)).toBe(calls);
  expect(
    sums.filter(
      ({ labels }) => labels.team === "other" && labels.key_alias === "other",
    ),
  ).toHaveLength(values);
});
