import { MIX_CALLS, type Load } from "./load-requests.ts";
import { MAX_CONNECTIONS, type Schedule } from "./load-schedule.ts";
import type { BenchOptions } from "./options.ts";
import type { Target } from "./testbed.ts";
import { TENANTS } from "./tenants.ts";

export type TargetName = Target["name"];

/** One measurement. */
export interface Step {
  readonly target: TargetName;
  readonly load: Load;
  readonly schedule: Schedule;
  /** Number of keys to call with, each of a different team. */
  readonly tenants: number;
}

/** Calls per second without queueing, at which the latency added to a load is measured. */
const QUIET_RATES: Readonly<Partial<Record<Load, number>>> = {
  cached: 1_000,
  stream: 50,
  "50k": 100,
  embeddings: 200,
};
/** Loads whose tail has goals at every rate of plain calls up to this one. */
const TAIL_LOADS: readonly Load[] = ["stream", "cached"];
const HIGHEST_TAIL_RATE = 1_000;
/** Calls of an open loop that tell its 99.9th percentile, if it lasts at most so many times as long as other runs. */
const TAIL_CALLS = 3_000;
const LONGER = 2.5;
/** An open loop ends early when so many seconds of calls are in flight, within the generator's limit: its target does not keep up. */
const GIVE_UP_AFTER_SECONDS = 1;
const MIX_CONCURRENCY = 16;
/** The number of connections of the main goals. */
const MAIN_CONCURRENCY = 64;
/** Warm-up before a program's first measurement of a load: until then, V8 is still compiling the code that the load takes. */
const FIRST_WARMUP_SECONDS = 10;

/** Plans all measurements. Targets of the same load follow each other, so that other load of the machine affects them alike. */
export function planSteps(
  options: BenchOptions,
  targets: readonly TargetName[],
): readonly Step[] {
  const { loads, concurrency, quick } = options;
  const main = concurrency.includes(MAIN_CONCURRENCY)
    ? MAIN_CONCURRENCY
    : Math.max(...concurrency);
  const steps: Step[] = [];
  const warmed = new Set<string>();

  const add = (target: TargetName, load: Load, schedule: Schedule) => {
    steps.push({ target, load, schedule, tenants: TENANTS });
  };
  const closed = (target: TargetName, load: Load, connections: number) => {
    const first = target !== "mock" && !warmed.has(`${target} ${load}`);
    warmed.add(`${target} ${load}`);
    const warmupSeconds = first
      ? Math.max(
          options.warmupSeconds,
          Math.min(FIRST_WARMUP_SECONDS, options.seconds * 2),
        )
      : options.warmupSeconds;
    add(target, load, {
      kind: "closed",
      concurrency: connections,
      ...times(options, warmupSeconds),
    });
  };
  const open = (target: TargetName, load: Load, rate: number) =>
    add(target, load, openLoop(options, rate));

  for (const load of loads) {
    if (load === "mix") {
      steps.push(mixOf(1), mixOf(TENANTS));
    } else {
      for (const target of targetsOf(load, targets)) {
        if (!quick || load === "plain" || !isPeer(target)) {
          closed(target, load, main);
        }
      }
    }
  }
  for (const load of loads) {
    if (quick && load === "embeddings") {
      continue;
    }
    for (const rate of ratesOf(load, options)) {
      for (const target of quietTargets(load, targets)) {
        open(target, load, rate);
      }
    }
  }
  for (const connections of concurrency.filter((it) => it !== main)) {
    for (const load of loads.filter((it) => it !== "mix")) {
      if (!quick || load === "plain") {
        for (const target of targetsOf(load, targets)) {
          if (!quick || target === "bare" || target === "gateway") {
            closed(target, load, connections);
          }
        }
      }
    }
  }
  return steps;
}

/** What the plan needs to know of a measurement. */
export interface Measured {
  readonly target: TargetName;
  readonly load: Load;
  readonly mode: Schedule["kind"];
  readonly rate: number | null;
  readonly kept_rate: boolean;
  readonly calls_per_second: number;
}

/**
 * Whether a peer cannot keep the rate of an open loop: it did not keep a lower one, or answered less than half as many calls of that load
 * in every closed loop. It would take minutes to answer what is in flight.
 */
export function isHopeless(
  { target, load, schedule }: Step,
  runs: readonly Measured[],
): boolean {
  if (!isPeer(target) || schedule.kind !== "open") {
    return false;
  }
  const own = runs.filter((run) => run.target === target && run.load === load);
  const closed = own.filter(({ mode }) => mode === "closed");
  return (
    own.some(
      ({ kept_rate, rate }) => !kept_rate && (rate ?? 0) <= schedule.rate,
    ) ||
    (closed.length > 0 &&
      closed.every(({ calls_per_second: calls }) => calls * 2 < schedule.rate))
  );
}

/** Rates of the open loops of a load, each once. */
function ratesOf(load: Load, options: BenchOptions): readonly number[] {
  if (load === "plain") {
    return options.rates;
  }
  const quiet = QUIET_RATES[load];
  const tail =
    TAIL_LOADS.includes(load) && !options.quick
      ? options.rates.filter((rate) => rate <= HIGHEST_TAIL_RATE)
      : [];
  const rates = [...(quiet === undefined ? [] : [quiet]), ...tail];
  return [...new Set(rates)].toSorted((a, b) => a - b);
}

function openLoop(
  { seconds, warmupSeconds }: BenchOptions,
  rate: number,
): Schedule {
  const enough = TAIL_CALLS / rate;
  const measured =
    enough <= seconds * LONGER ? Math.max(seconds, enough) : seconds;
  return {
    kind: "open",
    rate,
    giveUpAt: Math.min(
      MAX_CONNECTIONS,
      Math.ceil(rate * GIVE_UP_AFTER_SECONDS),
    ),
    warmupMs: warmupSeconds * 1_000,
    durationMs: measured * 1_000,
  };
}

/** Repeated questions that start with an empty cache. */
function mixOf(tenants: number): Step {
  return {
    target: "gateway",
    load: "mix",
    schedule: { kind: "count", concurrency: MIX_CONCURRENCY, calls: MIX_CALLS },
    tenants,
  };
}

function isPeer(target: TargetName): boolean {
  return target !== "mock" && target !== "bare" && target !== "gateway";
}

/** Only the gateway has a cache. */
function targetsOf(
  load: Load,
  targets: readonly TargetName[],
): readonly TargetName[] {
  return load === "cached" ? ["gateway"] : targets;
}

function quietTargets(
  load: Load,
  targets: readonly TargetName[],
): readonly TargetName[] {
  return load === "cached"
    ? ["gateway"]
    : targets.filter((target) => load === "plain" || target !== "bare");
}

function times(
  { seconds }: BenchOptions,
  warmupSeconds: number,
): { readonly warmupMs: number; readonly durationMs: number } {
  return { warmupMs: warmupSeconds * 1_000, durationMs: seconds * 1_000 };
}
