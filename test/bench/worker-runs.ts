import type { BenchGateway } from "./gateway.ts";
import type { LoadResult } from "./load-measurements.ts";
import type { Schedule } from "./load-schedule.ts";
import { rounded } from "./measure.ts";
import { processCpu } from "./process-cpu.ts";

/** One gateway with several workers, as `--json` prints it. */
export interface WorkerRun {
  readonly workers: number;
  readonly calls_per_second: number;
  /**
   * Of all its processes, in ms for each call, at the same rate for each worker: the fewer calls a worker has, the more each
   * costs. null where it cannot be read.
   */
  readonly gateway_cpu_ms: number | null;
  /** Calls a second with a core for each worker, to those of one worker: what the load and the other parts take is left out. */
  readonly to_one: number | null;
  readonly errors: number;
}

interface Options {
  readonly workers: readonly number[];
  /** To each worker. */
  readonly connections: number;
  /** Calls a second that each worker gets while its processor time is measured. */
  readonly rate: number;
  readonly seconds: number;
}

interface Ports {
  readonly start: (
    name: string,
    env: Readonly<Record<string, string>>,
  ) => Promise<BenchGateway>;
  readonly load: (
    gateway: BenchGateway,
    schedule: Schedule,
  ) => Promise<LoadResult>;
  /** Of code that has just started, for each worker and measured second. */
  readonly warmupCalls: number;
  readonly log: (line: string) => void;
}

/** Runs a gateway of each number of workers, with the same number of connections for each worker. */
export async function measureWorkers(
  options: Options,
  { start, load, warmupCalls, log }: Ports,
): Promise<readonly WorkerRun[]> {
  const runs: WorkerRun[] = [];
  for (const workers of options.workers) {
    log(`a gateway with ${workers} workers …`);
    const env = { NUM_WORKERS: `${workers}` };
    const gateway = await start(`run-${runs.length}`, env);
    const concurrency = options.connections * workers;
    const calls = Math.ceil(warmupCalls * workers * options.seconds);
    await load(gateway, { kind: "count", concurrency, calls });
    await gateway.drained();
    const durationMs = options.seconds * 1_000;
    const closed = await load(gateway, {
      kind: "closed",
      concurrency,
      warmupMs: 0,
      durationMs,
    });
    await gateway.drained();
    const cpu = startCpu(gateway.pid);
    const paced = await load(gateway, {
      kind: "open",
      rate: options.rate * workers,
      connections: concurrency,
      warmupMs: 0,
      durationMs,
    });
    await gateway.drained();
    const spent = cpu();
    runs.push({
      workers,
      calls_per_second: Math.round(closed.calls / closed.seconds),
      gateway_cpu_ms:
        spent === null ? null : rounded(spent / paced.answered, 3),
      to_one: null,
      errors: closed.errors + paced.errors,
    });
    await gateway.stop();
  }
  return comparedToOne(runs);
}

/** Returns a function that reads the processor time spent since, in ms; null without /proc. */
function startCpu(pid: number): () => number | null {
  if (process.platform !== "linux") {
    return () => null;
  }
  const before = processCpu(pid);
  return () => processCpu(pid) - before;
}

/** The runs with their throughput compared to that of the first one with a single worker. */
function comparedToOne(runs: readonly WorkerRun[]): readonly WorkerRun[] {
  const one = runs.find(({ workers }) => workers === 1)?.gateway_cpu_ms ?? null;
  return runs.map((run) => ({
    ...run,
    to_one:
      one === null || run.gateway_cpu_ms === null
        ? null
        : rounded((run.workers * one) / run.gateway_cpu_ms, 2),
  }));
}
