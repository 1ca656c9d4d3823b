import { MIX_CALLS, type Load } from "./load-requests.ts";
import type { Schedule } from "./load-program.ts";
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

/** Calls per second without queueing, at which the added latency is measured. */
const QUIET_RATES: Readonly<Partial<Record<Load, number>>> = {
  cached: 1_000,
  stream: 50,
  "50k": 100,
  embeddings: 200,
};
const MIX_CONCURRENCY = 16;
/** The number of connections of the main goals. */
const MAIN_CONCURRENCY = 64;
/** Warm-up of a program that has just been started and whose code is still being compiled. */
const FIRST_WARMUP_SECONDS = 2;

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
  const warmed = new Set<TargetName>();

  const add = (target: TargetName, load: Load, schedule: Schedule) => {
    steps.push({ target, load, schedule, tenants: TENANTS });
  };
  const closed = (target: TargetName, load: Load, connections: number) => {
    const first = target !== "mock" && !warmed.has(target);
    warmed.add(target);
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
    add(target, load, {
      kind: "open",
      rate,
      ...times(options, options.warmupSeconds),
    });

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
    const rates = load === "plain" ? options.rates : [QUIET_RATES[load] ?? 0];
    if (quick && load === "embeddings") {
      continue;
    }
    for (const rate of rates.filter((it) => it > 0)) {
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
