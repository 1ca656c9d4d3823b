import {
  nextRate,
  ratesUpTo,
  readFrontier,
  type Frontier,
  type Rung,
} from "./frontier.ts";
import type { LoadResult } from "./load-measurements.ts";
import { addTo, rounded, type Tally } from "./measure.ts";
import type { Target, Testbed } from "./testbed.ts";
import { TENANTS } from "./tenants.ts";

interface Options {
  /** Bounds of the 99th percentile, in ms; no frontier is measured without any. */
  readonly bounds: readonly number[];
  readonly seconds: number;
  readonly tally: Tally;
  readonly log: (line: string) => void;
}

/** The measured time of one rung, if that of other runs is not shorter. */
const RUNG_SECONDS = 2;
const WARMUP_SECONDS = 0.3;
/** A rung lasts up to twice as long to have so many calls: two of them are above its 99th percentile. */
const MIN_CALLS = 200;
/** Calls a second that are more than any program on two shared cores carries. */
const RATES = ratesUpTo(20_000);
/** With all calls of so many times the widest bound in flight, a target is overloaded. A few may be in flight by chance. */
const OVERLOADED_AFTER_BOUNDS = 2.5;
const MIN_IN_FLIGHT = 16;

interface Search {
  readonly target: Target;
  readonly rungs: Rung[];
}

/** Measures plain calls to every target but the mock, one rung of each in turn, so that other load of the machine affects them alike. */
export async function measureFrontier(
  testbed: Testbed,
  options: Options,
): Promise<readonly Frontier[]> {
  const { bounds } = options;
  if (bounds.length === 0) {
    return [];
  }
  const searches = testbed.targets
    .filter(({ name }) => name !== "mock")
    .map((target): Search => ({ target, rungs: [] }));
  const nextOf = ({ rungs }: Search) => nextRate(RATES, rungs, bounds);
  let open = searches;
  while (open.length > 0) {
    for (const search of open) {
      const rate = nextOf(search);
      if (rate !== null) {
        search.rungs.push(await measureRung(testbed, search, rate, options));
      }
    }
    open = open.filter((search) => nextOf(search) !== null);
  }
  return searches.map(({ target, rungs }) => ({
    target: target.name,
    readings: readFrontier(rungs, bounds),
    rungs,
  }));
}

async function measureRung(
  testbed: Testbed,
  { target, rungs }: Search,
  rate: number,
  { bounds, seconds, tally, log }: Options,
): Promise<Rung> {
  const overloadedAfter =
    (OVERLOADED_AFTER_BOUNDS * Math.max(...bounds)) / 1_000;
  const shortest = Math.min(seconds, RUNG_SECONDS);
  const duration = Math.min(shortest * 2, Math.max(shortest, MIN_CALLS / rate));
  const result = await testbed.load(target, {
    load: "plain",
    salt: `frontier ${target.name} ${rungs.length}`,
    tenants: TENANTS,
    schedule: {
      kind: "open",
      rate,
      giveUpAt: Math.max(MIN_IN_FLIGHT, rate * overloadedAfter),
      warmupMs: WARMUP_SECONDS * 1_000,
      durationMs: duration * 1_000,
    },
  });
  if (target.name === "gateway") {
    addTo(tally, result);
    await testbed.gateway.drained();
  }
  const rung = rungOf(rate, result);
  log(
    `frontier of ${target.name}: ${rate} calls/s, ${rung.p99_ms === null ? rung.result : `p99 ${rung.p99_ms} ms`}`,
  );
  return rung;
}

function rungOf(rate: number, result: LoadResult): Rung {
  const outcome = outcomeOf(result);
  return {
    rate,
    p99_ms:
      outcome === "kept" && result.sinceSent !== null
        ? rounded(result.sinceSent.p99, 2)
        : null,
    result: outcome,
  };
}

function outcomeOf({ errors, gaveUp, kept }: LoadResult): Rung["result"] {
  if (errors > 0) {
    return "errors";
  }
  if (gaveUp) {
    return "overloaded";
  }
  return kept ? "kept" : "generator late";
}
