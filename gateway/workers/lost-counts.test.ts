import { expect, test } from "vitest";
import type { CollectedMetric } from "../metrics/exposition.ts";
import { LostCounts } from "./lost-counts.ts";

function metricsOf(calls: number, inFlight: number): CollectedMetric[] {
  return [metric("calls", "counter", calls), metric("busy", "gauge", inFlight)];
}

function metric(name: string, type: string, value: number): CollectedMetric {
  return {
    name,
    help: name,
    type: type as never,
    aggregator: "sum",
    collect: () => undefined,
    values: [{ labels: {}, value }],
  };
}

function valuesOf(
  answers: readonly (readonly CollectedMetric[] | null)[],
  name: string,
): readonly (number | null)[] {
  return answers.map(
    (metrics) =>
      metrics?.find((one) => one.name === name)?.values[0]?.value ?? null,
  );
}

test("what a worker had counted stays when it ends, however often", async () => {
  const counts = new LostCounts();
  for (const calls of [3, 4]) {
    counts.answered(0, metricsOf(10, 1));
    counts.answered(1, metricsOf(calls, 5));
    counts.ended(1);
  }
  const answers = await counts.complete(2);
  expect(valuesOf(answers, "calls")).toEqual([10, null, 7]);
  // What it had at the moment is gone.
  expect(valuesOf(answers, "busy")).toEqual([1, null, null]);
});

test("a worker that does not answer in time counts as it did before", async () => {
  const counts = new LostCounts();
  counts.answered(1, metricsOf(3, 0));
  expect(valuesOf(await counts.complete(2), "calls")).toEqual([null, 3, null]);
});
