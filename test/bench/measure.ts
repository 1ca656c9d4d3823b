import type { Latency } from "./latencies.ts";
import type { LoadResult } from "./load-program.ts";
import { CACHED_PROMPTS, type Load } from "./load-requests.ts";
import type { Step, TargetName } from "./plan.ts";
import { costOf, resetCost, type Testbed } from "./testbed.ts";

/** One measurement, as `--json` prints it. Times in ms. */
export interface Run {
  readonly target: TargetName;
  readonly load: Load;
  /** closed and count: each connection waits for its response; open: calls are sent at a fixed rate. */
  readonly mode: "closed" | "count" | "open";
  /** Connections; null in an open loop. */
  readonly concurrency: number | null;
  /** Requested calls per second; null in a closed loop. */
  readonly rate: number | null;
  readonly tenants: number | null;
  readonly calls: number;
  readonly calls_per_second: number;
  readonly latency_ms: Latency | null;
  readonly first_byte_ms: Latency | null;
  /** Hits of the gateway's cache, by the responses. */
  readonly cache_hit_rate: number | null;
  readonly hit_latency_ms: Latency | null;
  readonly errors: number;
  readonly first_error: string | null;
  /** Cost of the target's process; null for the mock. */
  readonly cpu_ms_per_call: number | null;
  readonly rss_mb: number | null;
  readonly event_loop_delay_ms: Latency | null;
  /** Journaled calls that were not in the ledger yet after the last response. */
  readonly journal_behind: number | null;
}

/** Responses of the gateway in all runs; the ledger must contain the same calls. */
export interface Tally {
  answered: number;
  fromCache: number;
}

let salts = 0;

/** Runs one step and waits until all its calls are in the ledger. */
export async function measure(
  testbed: Testbed,
  step: Step,
  tally: Tally,
): Promise<Run> {
  const { load, schedule, tenants } = step;
  const target = testbed.targets.find(({ name }) => name === step.target);
  if (target === undefined) {
    throw new Error(`target ${step.target} not found`);
  }
  const salt = `run ${++salts}`;
  if (load === "cached") {
    const schedule = {
      kind: "count",
      concurrency: 1,
      calls: CACHED_PROMPTS * tenants,
    } as const;
    addTo(tally, await testbed.load(target, { load, schedule, tenants, salt }));
  }
  await resetCost(target);
  const result = await testbed.load(target, { load, schedule, tenants, salt });
  const cost = await costOf(target);
  const ours = target.name === "gateway";
  let behind: number | null = null;
  if (ours) {
    behind = await testbed.gateway.journaled();
    addTo(tally, result);
    await testbed.gateway.drained();
  }
  return {
    target: target.name,
    load,
    mode: schedule.kind,
    concurrency: schedule.kind === "open" ? null : schedule.concurrency,
    rate: schedule.kind === "open" ? schedule.rate : null,
    tenants: ours ? tenants : null,
    calls: result.calls,
    calls_per_second: rounded(result.calls / result.seconds, 1),
    latency_ms: result.latency,
    first_byte_ms: load === "stream" ? result.firstByte : null,
    cache_hit_rate:
      ours && result.calls > 0
        ? rounded(result.cacheHits / result.calls, 4)
        : null,
    hit_latency_ms: result.hitLatency,
    errors: result.errors,
    first_error: result.firstError,
    cpu_ms_per_call:
      cost === null || result.answered === 0
        ? null
        : rounded(cost.cpuMs / result.answered, 3),
    rss_mb: cost === null ? null : rounded(cost.rssMb, 0),
    event_loop_delay_ms:
      cost === null
        ? null
        : {
            p50: rounded(cost.loopDelay.p50, 2),
            p99: rounded(cost.loopDelay.p99, 2),
            max: rounded(cost.loopDelay.max, 2),
          },
    journal_behind: behind,
  };
}

export function addTo(
  tally: Tally,
  { answered, answeredFromCache }: LoadResult,
): void {
  tally.answered += answered;
  tally.fromCache += answeredFromCache;
}

export function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
