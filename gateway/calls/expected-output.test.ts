import { expect, test } from "vitest";
import { expectedOutput } from "./expected-output.ts";

/** Of a model that has answered with 400 tokens at most; `limits`: the own `max_tokens` of its deployments. */
function expected(...limits: readonly (number | null)[]): number {
  const deployments = limits.map((limit) => ({
    defaults: limit === null ? {} : { max_tokens: limit },
  }));
  const gateway = {
    config: { general: { budgetMode: "default" } },
    tokens: { outputEstimate: () => 400 },
  };
  return expectedOutput(gateway as never, { deployments } as never);
}

test("no longer answer is expected than all deployments allow by their own max_tokens", () => {
  expect(expected(100)).toBe(100);
  expect(expected(100, 200)).toBe(200);
  expect(expected(100, null)).toBe(400);
  expect(expected(8_000)).toBe(400);
});
