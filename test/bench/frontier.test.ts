import { expect, test } from "vitest";
import { nextRate, ratesUpTo, readFrontier, type Rung } from "./frontier.ts";

const BOUNDS = [1, 5, 10, 50, 100];

/** Measures until every reading is final. */
function search(
  highest: number,
  measure: (rate: number, attempt: number) => Omit<Rung, "rate">,
): readonly Rung[] {
  const rates = ratesUpTo(highest);
  const rungs: Rung[] = [];
  for (;;) {
    const rate = nextRate(rates, rungs, BOUNDS);
    if (rate === null) {
      return rungs;
    }
    const attempt = rungs.filter((rung) => rung.rate === rate).length;
    rungs.push({ rate, ...measure(rate, attempt) });
  }
}

function kept(p99_ms: number): Omit<Rung, "rate"> {
  return { p99_ms, result: "kept" };
}

const OVERLOADED: Omit<Rung, "rate"> = { p99_ms: null, result: "overloaded" };

function readings(rungs: readonly Rung[]) {
  return readFrontier(rungs, BOUNDS).map(
    ({ calls_per_second }) => calls_per_second,
  );
}

test("rates grow by a quarter, up to the first one that is high enough", () => {
  expect(ratesUpTo(1_000)).toEqual([
    25, 31, 40, 50, 63, 79, 100, 130, 160, 200, 250, 310, 400, 500, 630, 790,
    1_000,
  ]);
  expect(ratesUpTo(10)).toEqual([25]);
});

test("the highest rate within each bound is found with few rungs", () => {
  const tail = (rate: number) => (rate > 3_000 ? OVERLOADED : kept(rate / 100));
  const rungs = search(5_000, tail);
  expect(readings(rungs)).toEqual([100, 500, 1_000, 2_500, 2_500]);
  expect(rungs.length).toBeLessThan(ratesUpTo(5_000).length);
});

test("a rung that barely missed its bound is repeated once, and the better one counts", () => {
  const noisy = search(1_000, (rate, attempt) =>
    kept(rate === 400 && attempt === 0 ? 140 : rate > 400 ? 500 : 0.5),
  );
  expect(noisy.filter(({ rate }) => rate === 400)).toHaveLength(2);
  expect(readings(noisy)).toEqual([400, 400, 400, 400, 400]);
  const far = search(1_000, (rate) => kept(rate > 400 ? 500 : 0.5));
  expect(far.filter(({ rate }) => rate === 500)).toHaveLength(1);
});

test("without any rung within a bound there is no reading, and failed calls never count", () => {
  const slow = search(100, () => kept(20));
  expect(readings(slow)).toEqual([null, null, null, 100, 100]);
  const failing = search(100, () => ({ p99_ms: null, result: "errors" }));
  expect(readings(failing)).toEqual([null, null, null, null, null]);
});

test("a reading below a rate at which only the generator was late, or below none, is a lower bound", () => {
  const late = search(1_000, (rate) =>
    rate > 310 ? { p99_ms: null, result: "generator late" } : kept(0.5),
  );
  expect(readFrontier(late, [1])).toEqual([
    { bound_ms: 1, calls_per_second: 310, at_least: true },
  ]);
  const all = search(1_000, () => kept(0.5));
  expect(readFrontier(all, [1])).toEqual([
    { bound_ms: 1, calls_per_second: 1_000, at_least: true },
  ]);
  const limited = search(1_000, (rate) =>
    rate > 310 ? OVERLOADED : kept(0.5),
  );
  expect(readFrontier(limited, [1])).toEqual([
    { bound_ms: 1, calls_per_second: 310, at_least: false },
  ]);
});

test("a wider bound never reads less", () => {
  const rungs: readonly Rung[] = [
    { rate: 100, ...kept(4) },
    { rate: 200, ...kept(0.5) },
    { rate: 400, ...kept(30) },
  ];
  expect(readings(rungs)).toEqual([200, 200, 200, 400, 400]);
});
