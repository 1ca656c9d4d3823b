import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { median } from "./comparison.ts";
import { query, type Pool } from "../../gateway/database/pool.ts";
import type { Cleanup } from "./cleanup.ts";
import { countDifferences, measureDrains, type Drains } from "./drain-loops.ts";
import { countExpenses, type Expenses } from "./expenses.ts";
import { startBenchGateway, type BenchGateway } from "./gateway.ts";
import type { LoadResult } from "./load-measurements.ts";
import type { LoadRun } from "./load-program.ts";
import type { Schedule } from "./load-schedule.ts";
import { describeMachine, type Machine } from "./machine.ts";
import { rounded } from "./measure.ts";
import { postgresCpu } from "./postgres-cpu.ts";
import { redisCpu } from "./redis-cpu.ts";
import { programFile, startProgram, type Program } from "./programs.ts";
import {
  ceilingsOf,
  forecast,
  type CallCosts,
  type Ceiling,
  type Forecast,
} from "./scale-forecast.ts";
import type { Testbed } from "./testbed.ts";
import { measureWorkers, type WorkerRun } from "./worker-runs.ts";
import { sum } from "../../core/sum.ts";

export interface ScaleOptions {
  readonly instances: readonly number[];
  readonly workers: readonly number[];
  /** Calls a second to each worker, while its processor time is measured. */
  readonly rate: number;
  readonly connections: number;
  readonly drains: readonly number[];
  readonly seconds: number;
  readonly json: boolean;
}

/** One run with several gateways, as `--json` prints it. Processor time in ms for each call. */
interface ScaleRun extends Expenses {
  readonly instances: number;
  readonly calls_per_second: number;
  readonly p50_ms: number | null;
  readonly p99_ms: number | null;
  readonly gateway_cpu_ms: number;
  readonly redis_cpu_ms: number;
  readonly postgres_cpu_ms: number | null;
  readonly redis_scripts_per_second: number;
  readonly rows_per_second: number;
  readonly errors: number;
}

export interface ScaleResults {
  readonly machine: Machine;
  readonly runs: readonly ScaleRun[];
  readonly workers: readonly WorkerRun[];
  readonly drains: readonly Drains[];
  readonly costs: CallCosts;
  readonly ceilings: readonly Ceiling[];
  readonly forecasts: readonly Forecast[];
  /** Every call has one row, and every sum agrees. */
  readonly complete: boolean;
}

/** A gateway with its own load generator. */
interface Instance {
  readonly gateway: BenchGateway;
  readonly load: Program;
}

const FORECAST_RATES = [1_000, 10_000, 100_000] as const;
/** Calls to a gateway that has just started, whose code is still being compiled, for each measured second. */
const WARMUP_CALLS = 400;

/** Gateways on one Redis and one Postgres, more with each run, each with its own load generator. */
export class ScaleBench {
  readonly #options: ScaleOptions;
  readonly #cleanup: Cleanup;
  readonly #testbed: Testbed;
  readonly #pool: Pool;
  readonly #instances: Instance[] = [];
  #answered = 0;
  #salts = 0;

  constructor(
    options: ScaleOptions,
    cleanup: Cleanup,
    testbed: Testbed,
    pool: Pool,
  ) {
    this.#options = options;
    this.#cleanup = cleanup;
    this.#testbed = testbed;
    this.#pool = pool;
  }

  async run(): Promise<ScaleResults> {
    const machine = describeMachine();
    const runs: ScaleRun[] = [];
    for (const instances of this.#options.instances) {
      log(`${instances} gateways …`);
      await this.#startInstances(instances);
      runs.push(await this.#measure());
    }
    const workers = await this.#measureWorkers();
    const complete = await this.#isComplete();
    const drains: Drains[] = [];
    for (const loops of this.#options.drains) {
      log(`${loops} drains …`);
      const { databaseUrl } = this.#testbed;
      const { seconds } = this.#options;
      drains.push(await measureDrains(databaseUrl, loops, seconds));
    }
    const costs = costsOf(runs);
    return {
      machine,
      runs,
      workers,
      drains,
      costs,
      ceilings: ceilingsOf(costs),
      forecasts: FORECAST_RATES.map((rate) => forecast(costs, rate)),
      complete: complete && (await countDifferences(this.#pool)) === 0,
    };
  }

  async #startInstances(count: number): Promise<void> {
    while (this.#instances.length < count) {
      const gateway =
        this.#instances.length === 0
          ? this.#testbed.gateway
          : await this.#startGateway();
      const load = await this.#startLoad();
      const instance = { gateway, load };
      this.#instances.push(instance);
      await this.#load(instance, {
        kind: "count",
        concurrency: this.#options.connections,
        calls: Math.ceil(WARMUP_CALLS * this.#options.seconds),
      });
    }
  }

  /** One gateway after the other. */
  async #measureWorkers(): Promise<readonly WorkerRun[]> {
    const load = await this.#startLoad();
    return measureWorkers(this.#options, {
      start: (name, env) => this.#testbed.startGateway(name, env),
      load: (gateway, schedule) => this.#load({ gateway, load }, schedule),
      warmupCalls: WARMUP_CALLS,
      log,
    });
  }

  #startLoad(): Promise<Program> {
    return this.#cleanup.keep(
      startProgram(programFile("load-program.ts"), {
        name: "load generator",
        nodeArgs: ["--import", programFile("probe.ts")],
      }),
      (it) => it.stop(),
    );
  }

  async #startGateway(): Promise<BenchGateway> {
    const { directory, databaseUrl, redis, mock } = this.#testbed;
    const { port } = await mock.ask<{ port: number }>({ ask: "port" });
    return this.#cleanup.keep(
      startBenchGateway({
        directory: mkdtempSync(join(directory, "instance-")),
        databaseUrl,
        redisPort: redis.port,
        providerPort: port,
      }),
      (it) => it.stop(),
    );
  }

  async #load(
    { gateway, load }: Instance,
    schedule: Schedule,
  ): Promise<LoadResult> {
    const result = await load.ask<LoadResult>({
      load: "plain",
      schedule,
      salt: `scale ${++this.#salts}`,
      port: gateway.port,
      headers: {},
      keys: this.#testbed.tenants.map(({ key }) => key),
    } satisfies LoadRun);
    this.#answered += result.answered;
    return result;
  }

  async #measure(): Promise<ScaleRun> {
    await this.#drained();
    const expenses = await countExpenses(this.#testbed);
    const spent = await this.#countCpu();
    const startedAt = performance.now();
    const results = await Promise.all(
      this.#instances.map((instance) =>
        this.#load(instance, {
          kind: "closed",
          concurrency: this.#options.connections,
          warmupMs: 0,
          durationMs: this.#options.seconds * 1_000,
        }),
      ),
    );
    await this.#drained();
    const elapsed = (performance.now() - startedAt) / 1_000;
    const calls = sum(results.map(({ answered }) => answered));
    const rate = sum(results.map((one) => one.calls / one.seconds));
    const cpu = await spent();
    const perCall = await expenses();
    return {
      ...perCall,
      instances: this.#instances.length,
      calls_per_second: Math.round(rate),
      p50_ms: medianKnown(results.map(({ latency }) => latency?.p50 ?? null)),
      p99_ms: medianKnown(results.map(({ latency }) => latency?.p99 ?? null)),
      gateway_cpu_ms: rounded(cpu.gateways / calls, 3),
      redis_cpu_ms: rounded(cpu.redis / calls, 4),
      postgres_cpu_ms:
        cpu.postgres === null ? null : rounded(cpu.postgres / calls, 4),
      redis_scripts_per_second: Math.round(
        rate * perCall.redis_scripts_per_call,
      ),
      rows_per_second: Math.round(calls / elapsed),
      errors: sum(results.map(({ errors }) => errors)),
    };
  }

  /** Starts counting processor time; the returned function reads it, in ms. */
  async #countCpu() {
    const postgres = await postgresCpu(this.#pool);
    const redis = () => redisCpu(this.#testbed.redis.client);
    const [redisBefore, postgresBefore] = [await redis(), postgres?.() ?? 0];
    const meters = this.#instances.map(({ gateway }) => gateway.meter);
    await Promise.all(meters.map((meter) => meter.reset()));
    return async () => ({
      gateways: sum(
        (await Promise.all(meters.map((meter) => meter.read()))).map(
          ({ cpuMs }) => cpuMs,
        ),
      ),
      redis: (await redis()) - redisBefore,
      postgres: postgres === null ? null : postgres() - postgresBefore,
    });
  }

  async #drained(): Promise<void> {
    await Promise.all(this.#instances.map(({ gateway }) => gateway.drained()));
  }

  async #isComplete(): Promise<boolean> {
    const [rows] = await query<{ count: number }>(
      this.#pool,
      "SELECT count(*) FROM spend_log WHERE payer IS NULL",
    );
    const differences = await countDifferences(this.#pool);
    return rows?.count === this.#answered && differences === 0;
  }
}

/**
 * Of the run with the most calls for each gateway, as gateways are added only when others are busy: the more calls share scripts
 * and batches, the less each costs. Bytes are those of the last run: indexes of a small ledger are mostly empty.
 */
function costsOf(runs: readonly ScaleRun[]): CallCosts {
  const [busiest] = runs.toSorted(
    (one, other) => busyness(other) - busyness(one),
  );
  const last = runs.at(-1);
  if (busiest === undefined || last === undefined) {
    throw new Error("no run was measured");
  }
  return {
    gateway_cpu_ms: busiest.gateway_cpu_ms,
    redis_cpu_ms: busiest.redis_cpu_ms,
    postgres_cpu_ms: busiest.postgres_cpu_ms ?? 0,
    redis_scripts: busiest.redis_scripts_per_call,
    ledger_bytes: last.ledger_bytes_per_call,
    wal_bytes: last.wal_bytes_per_call,
  };
}

function busyness({ calls_per_second: calls, instances }: ScaleRun): number {
  return calls / instances;
}

function medianKnown(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : median(known);
}

/** Logs progress to standard error; standard output is for the results. */
function log(line: string): void {
  process.stderr.write(`${line}\n`);
}
