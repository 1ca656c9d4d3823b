import type { TargetName } from "./plan.ts";

/** How many calls per second a target carries within each bound of the tail: readings of the same short open loops. */
export interface Frontier {
  readonly target: TargetName;
  readonly readings: readonly Reading[];
  readonly rungs: readonly Rung[];
}

export interface Reading {
  /** Of the 99th percentile of the latency. */
  readonly bound_ms: number;
  /** null if no rung was within the bound. */
  readonly calls_per_second: number | null;
  /** The next rate failed only because the generator did not send its calls in time. */
  readonly at_least: boolean;
}

/** One open loop. */
export interface Rung {
  readonly rate: number;
  /** Of the latency from the moment that each call was sent, in ms; null if the rung does not count. */
  readonly p99_ms: number | null;
  readonly result: "kept" | "errors" | "overloaded" | "generator late";
}

/**
 * A rate is tried again if its first rung missed a bound by less than this factor, or ended early without failed calls: noise must not
 * hide what a target can do.
 */
const NEAR = 3;
const MAX_ATTEMPTS = 2;
const LOWEST_RATE = 25;
const STEPS_PER_DECADE = 10;
const DIGITS = 2;

/** Rates in steps of a tenth of a decade (26 %), from 25 calls per second up to the first one from `highest` on. */
export function ratesUpTo(highest: number): readonly number[] {
  const rates: number[] = [];
  for (let step = 0; (rates.at(-1) ?? 0) < highest; step++) {
    const rate = LOWEST_RATE * 10 ** (step / STEPS_PER_DECADE);
    rates.push(Number(rate.toPrecision(DIGITS)));
  }
  return rates;
}

/**
 * The rate to measure next; null when every reading is final. Halves the rates between the highest that is within a bound and the
 * lowest above it that is not, bound by bound from the widest: each rung counts for all of them.
 */
export function nextRate(
  rates: readonly number[],
  rungs: readonly Rung[],
  bounds: readonly number[],
): number | null {
  for (const bound of bounds.toSorted((a, b) => b - a)) {
    const states = rates.map((rate) =>
      stateOf(
        rungs.filter((rung) => rung.rate === rate),
        bound,
      ),
    );
    const within = states.lastIndexOf("within");
    const above = states.findIndex(
      (state, at) => at > within && (state === "missed" || state === "near"),
    );
    if (states[above] === "near") {
      return rates[above] ?? null;
    }
    const beyond = above < 0 ? rates.length : above;
    if (beyond - within > 1) {
      return rates[(within + beyond) >> 1] ?? null;
    }
  }
  return null;
}

/** What rungs of one rate say about a bound; `near`: another one may be within it. */
function stateOf(
  rungs: readonly Rung[],
  bound: number,
): "unknown" | "within" | "near" | "missed" {
  if (rungs.length === 0) {
    return "unknown";
  }
  if (rungs.some((rung) => isWithin(rung, bound))) {
    return "within";
  }
  const mayRepeat = rungs.every(
    ({ p99_ms, result }) =>
      result !== "errors" && (p99_ms ?? 0) <= bound * NEAR,
  );
  return rungs.length < MAX_ATTEMPTS && mayRepeat ? "near" : "missed";
}

function isWithin({ p99_ms }: Rung, bound: number): boolean {
  return p99_ms !== null && p99_ms <= bound;
}

/** The most calls per second within each bound. */
export function readFrontier(
  rungs: readonly Rung[],
  bounds: readonly number[],
): readonly Reading[] {
  return bounds.map((bound) => {
    const rates = rungs
      .filter((rung) => isWithin(rung, bound))
      .map(({ rate }) => rate);
    const highest = rates.length === 0 ? null : Math.max(...rates);
    const next = Math.min(
      ...rungs.map(({ rate }) => rate).filter((rate) => rate > (highest ?? 0)),
    );
    const failed = rungs.filter(({ rate }) => rate === next);
    return {
      bound_ms: bound,
      calls_per_second: highest,
      at_least:
        highest !== null &&
        (failed.length === 0 ||
          failed.every(({ result }) => result === "generator late")),
    };
  });
}
