import type { Latency } from "./latencies.ts";
import type { LoadResult } from "./load-measurements.ts";
import { CACHED_PROMPTS, type Load } from "./load-requests.ts";
import type { LoopDelay } from "./loop-delay.ts";
import type { Step, TargetName } from "./plan.ts";
import type { Testbed } from "./testbed.ts";

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
  /** From the moment that a call was due. */
  readonly latency_ms: Latency | null;
  /** How late the generator sent the calls of an open loop. */
  readonly late_ms: Latency | null;
  /** Whether an open loop had its rate: nearly all calls were sent in time, and the target kept up. */
  readonly kept_rate: boolean;
  readonly first_byte_ms: Latency | null;
  /** Hits of the gateway's cache, by the responses. */
  readonly cache_hit_rate: number | null;
  readonly hit_latency_ms: Latency | null;
  readonly errors: number;
  readonly first_error: string | null;
  /** Cost of the target's process; null for the mock. */
  readonly cpu_ms_per_call: number | null;
  /** Of the gateway, Redis and Postgres until all calls are in the ledger; null for other targets, and without /proc. */
  readonly all_cpu_ms_per_call: number | null;
  readonly rss_mb: number | null;
  /** null unless it is a Node process. */
  readonly event_loop_delay_ms:
    (Omit<LoopDelay, "pauses"> & { readonly pauses_over_10_ms: number }) | null;
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
  const serversBefore = await testbed.serversCpu();
  await target.meter?.reset();
  const result = await testbed.load(target, { load, schedule, tenants, salt });
  const cost = (await target.meter?.read()) ?? null;
  const ours = target.name === "gateway";
  let behind: number | null = null;
  let allCpu: number | null = null;
  if (ours) {
    behind = await testbed.gateway.journaled();
    addTo(tally, result);
    await testbed.gateway.drained();
    const { cpuMs } = await testbed.gateway.meter.read();
    const servers = await testbed.serversCpu();
    if (servers !== null && serversBefore !== null && result.answered > 0) {
      allCpu = (cpuMs + servers - serversBefore) / result.answered;
    }
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
    late_ms: result.late,
    kept_rate: result.kept,
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
    all_cpu_ms_per_call: allCpu === null ? null : rounded(allCpu, 3),
    rss_mb: cost === null ? null : rounded(cost.rssMb, 0),
    event_loop_delay_ms: delayOf(cost?.loopDelay ?? null),
    journal_behind: behind,
  };
}

function delayOf(delay: LoopDelay | null): Run["event_loop_delay_ms"] {
  return delay === null
    ? null
    : {
        p50: rounded(delay.p50, 2),
        p99: rounded(delay.p99, 2),
        max: rounded(delay.max, 2),
        pauses_over_10_ms: delay.pauses,
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
