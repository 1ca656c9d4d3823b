import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterEach, expect, test } from "vitest";
import { LEASE_MS } from "../../gateway/limits/limits.ts";
import { heldInRedis } from "../../gateway/limits/testing/fleet.ts";
import { startProgram, type Program } from "../bench/programs.ts";
import { gatewayUrl } from "../servers/database.ts";
import type { TestPostgres } from "../servers/postgres.ts";
import { programEnv } from "../servers/program-env.ts";
import {
  hasRedisServer,
  redisAt,
  startRedis,
  type TestRedis,
} from "../servers/redis.ts";
import type {
  InstanceQuestion,
  InstanceReport,
  InstanceSettings,
} from "./instance-program.ts";
import { createRandom } from "./random.ts";
import { startTestbedPostgres } from "./testbed.ts";

const PROGRAM = join(import.meta.dirname, "instance-program.ts");
const INSTANCES = 16;
const COST = 1_000;
/** In calls; used up at the latest once all instances are back. */
const BUDGET = 2_500;
const REQUESTS_PER_MINUTE = 1_600;
const CHANGES = 14;
const CHANGE_EVERY_MS = 100;
const PATIENCE = { timeout: 20_000, interval: 100 };

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) {
    await close();
  }
});

/** An instance that is started, stopped and killed; its journal stays. */
class Instance {
  readonly #settings: InstanceSettings;
  #program: Program | null = null;

  constructor(settings: InstanceSettings) {
    this.#settings = settings;
  }

  get isRunning(): boolean {
    return this.#program !== null;
  }

  /** `clockAhead`: of the limits' clock, in ms; the same for all instances. */
  async start(clockAhead = 0): Promise<void> {
    this.#program = startProgram(PROGRAM, {
      name: "instance",
      args: [JSON.stringify({ ...this.#settings, clockAhead })],
      env: programEnv(),
    });
    await this.state();
  }

  ask<Answer>(question: InstanceQuestion): Promise<Answer> {
    if (this.#program === null) {
      throw new Error("the instance is not running");
    }
    return this.#program.ask<Answer>(question);
  }

  state(): Promise<InstanceReport> {
    return this.ask({ ask: "state" });
  }

  async stop(): Promise<void> {
    await this.ask({ ask: "stop" });
    await this.#end("SIGTERM");
  }

  kill(): Promise<void> {
    return this.#end("SIGKILL");
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const program = this.#program;
    this.#program = null;
    if (program?.running() === true) {
      process.kill(program.pid, signal);
      await program.stop();
    }
  }

  /** Ids of the calls that left, by all its processes. */
  left(): readonly string[] {
    const text = readFileSync(this.#settings.record, "utf8");
    return text.split("\n").filter((id) => id !== "");
  }
}

interface Fleet {
  readonly instances: readonly Instance[];
  readonly redis: TestRedis;
  readonly sql: pg.Client;
  running(): readonly Instance[];
  ended(): readonly Instance[];
}

async function startFleet(): Promise<Fleet> {
  const directory = mkdtempSync(join(tmpdir(), "hearth-instances-"));
  closing.push(() => rmSync(directory, { recursive: true, force: true }));
  const postgres: TestPostgres = await startTestbedPostgres();
  closing.push(() => postgres.remove());
  const redis = await startRedis();
  closing.push(() => redis.remove());
  const sql = new pg.Client({ connectionString: postgres.url("hearth") });
  await sql.connect();
  closing.push(() => sql.end());
  const instances = Array.from({ length: INSTANCES }, (_, at) => {
    const journal = join(directory, `journal-${at}`);
    mkdirSync(journal);
    return new Instance({
      directory: journal,
      record: join(directory, `left-${at}`),
      databaseUrl: gatewayUrl(postgres.url("hearth")),
      redis: redisAt(redis.port),
      callers: 2,
      cost: COST,
      budget: BUDGET * COST,
      requestsPerMinute: REQUESTS_PER_MINUTE,
      callMs: 80,
      clockAhead: 0,
    });
  });
  closing.push(() => Promise.all(instances.map((one) => one.kill())));
  await Promise.all(instances.map((one) => one.start()));
  return {
    instances,
    redis,
    sql,
    running: () => instances.filter((one) => one.isRunning),
    ended: () => instances.filter((one) => !one.isRunning),
  };
}

function all<Answer>(
  instances: readonly Instance[],
  question: InstanceQuestion,
): Promise<readonly Answer[]> {
  return Promise.all(instances.map((one) => one.ask<Answer>(question)));
}

/** Instances are killed, stop, and start again, under calls; answers those that were killed and those that stopped last. */
async function comeAndGo(fleet: Fleet, seed: number) {
  const random = createRandom(seed);
  const killed = new Set<Instance>();
  for (let change = 0; change < CHANGES; change++) {
    const [running, ended] = [fleet.running(), fleet.ended()];
    if (ended.length > 0 && random.chance(0.4)) {
      const one = random.pick(ended);
      killed.delete(one);
      await one.start();
      await one.ask({ ask: "run", untilExceeded: false });
    } else if (running.length > INSTANCES / 2) {
      const one = random.pick(running);
      if (random.chance(0.5)) {
        killed.add(one);
        await one.kill();
      } else {
        await one.stop();
      }
    }
    await sleep(CHANGE_EVERY_MS);
  }
  const [one, other] = fleet.running();
  await one?.kill();
  await other?.stop();
  if (one !== undefined) {
    killed.add(one);
  }
  return { killed };
}

test.runIf(hasRedisServer())(
  "16 instances that come and go share one budget exactly, and leave nothing behind",
  { timeout: 120_000 },
  async () => {
    const fleet = await startFleet();
    const { redis, sql } = fleet;
    const seed = Math.floor(Math.random() * 2 ** 32);
    await all(fleet.running(), { ask: "run", untilExceeded: false });
    const { killed } = await comeAndGo(fleet, seed);
    const running = fleet.running();
    await all(running, { ask: "pause" });

    // Leases of killed instances are gone a minute later, and their settled spend is not.
    await all(running, { ask: "drained" });
    await all(running, { ask: "advance", ms: LEASE_MS });
    const held = async () =>
      (await heldInRedis(redis.client, "hearth:limits:")).filter(
        (one) => !one.includes(" pending "),
      );
    await expect.poll(held, PATIENCE).toEqual([]);
    const listed = async () => {
      const reports = await all<InstanceReport>(running, { ask: "state" });
      const live = new Set(reports.map(({ instance }) => instance));
      return (reports[0]?.others ?? []).map((one) => ({
        isLive: live.has(one.instance),
        isRunning: one.running,
      }));
    };
    // Those that stopped have left the list.
    await expect
      .poll(listed, PATIENCE)
      .toHaveLength(running.length + killed.size);
    await expect
      .poll(
        async () =>
          (await listed()).map(({ isLive, isRunning }) => isLive === isRunning),
        PATIENCE,
      )
      .not.toContain(false);

    // Without Redis, each has a share of those that live.
    await redis.stop();
    const share = Math.floor(REQUESTS_PER_MINUTE / running.length);
    await expect
      .poll(
        async () =>
          (await all<InstanceReport>(running, { ask: "state" })).map(
            (one) => one.share,
          ),
        PATIENCE,
      )
      .toEqual(running.map(() => share));
    await redis.start();

    // All are back on their journals, and use up the budget.
    await Promise.all(fleet.ended().map((one) => one.start(LEASE_MS)));
    await all(fleet.instances, { ask: "drained" });
    await all(fleet.instances, { ask: "run", untilExceeded: true });
    await Promise.all(fleet.instances.map((one) => one.stop()));

    const { rows } = await sql.query<{ id: string; status: string }>(
      "SELECT request_id AS id, status FROM spend_log",
    );
    const left = new Set(fleet.instances.flatMap((one) => one.left()));
    const ids = new Set(rows.map(({ id }) => id));
    expect(rows).toHaveLength(ids.size);
    expect([...left].filter((id) => !ids.has(id))).toEqual([]);
    const extra = rows.filter(({ id }) => !left.has(id));
    expect(extra.every(({ status }) => status === "interrupted")).toBe(true);
    // One call crosses the budget.
    expect(rows.length, `seed ${seed}`).toBe(BUDGET);
    const { rows: wrong } = await sql.query("SELECT * FROM spend_check");
    expect(wrong).toEqual([]);
    expect(await heldInRedis(redis.client, "hearth:limits:")).toEqual([]);
    expect(await redis.client.zrange("hearth:limits:beats", "0", "-1")).toEqual(
      [],
    );
  },
);
