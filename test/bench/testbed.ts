import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  ROLES_SQL,
  startPostgres,
  type TestPostgres,
} from "../servers/postgres.ts";
import { startRedis, type TestRedis } from "../servers/redis.ts";
import { withClient } from "../servers/with-client.ts";
import type { Cleanup } from "./cleanup.ts";
import { startBenchGateway, type BenchGateway } from "./gateway.ts";
import type { Load } from "./load-requests.ts";
import type { LoadResult } from "./load-measurements.ts";
import type { LoadRun } from "./load-program.ts";
import type { Schedule } from "./load-schedule.ts";
import { meterOf, type Meter } from "./meter.ts";
import { startPeer, type InstalledPeer, type PeerName } from "./peers.ts";
import { postgresCpu } from "./postgres-cpu.ts";
import { programFile, startProgram, type Program } from "./programs.ts";
import { redisCpu } from "./redis-cpu.ts";
import { createTenants, type Tenant } from "./tenants.ts";

/** The servers and programs of a benchmark, each in a separate process. */
export interface Testbed {
  readonly directory: string;
  readonly databaseUrl: string;
  readonly superuserUrl: string;
  readonly redis: TestRedis;
  readonly mock: Program;
  readonly gateway: BenchGateway;
  /** Starts another gateway on the same servers, with these variables. */
  startGateway(
    name: string,
    env: Readonly<Record<string, string>>,
  ): Promise<BenchGateway>;
  readonly tenants: readonly Tenant[];
  readonly targets: readonly Target[];
  /** Processor time of Redis and Postgres in ms since they were started; null without /proc. */
  serversCpu(): Promise<number | null>;
  /** Runs a load against one target. */
  load(target: Target, order: LoadOrder): Promise<LoadResult>;
}

/** A program to which calls are sent. */
export interface Target {
  readonly name: "mock" | "bare" | "gateway" | PeerName;
  readonly port: number;
  readonly keys: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  /** null if its cost is not measured. */
  readonly meter: Meter | null;
}

interface LoadOrder {
  readonly load: Load;
  readonly schedule: Schedule;
  readonly salt: string;
  /** Number of the target's keys to use; all by default. */
  readonly tenants?: number;
}

interface TestbedOptions {
  /** Other gateways to compare with. */
  readonly peers: readonly InstalledPeer[];
}

const PASSWORD = "gateway-bench-password";

export async function startTestbed(
  cleanup: Cleanup,
  { peers }: TestbedOptions,
): Promise<Testbed> {
  const directory = await cleanup.keep(
    mkdtempSync(join(tmpdir(), "hearth-bench-")),
    (path) => rmSync(path, { recursive: true, force: true }),
  );
  const start = (file: string, name: string, args: readonly string[] = []) =>
    cleanup.keep(
      startProgram(programFile(file), {
        name,
        args,
        nodeArgs: ["--import", programFile("probe.ts")],
      }),
      (it) => it.stop(),
    );
  const [redis, postgres, load, mock] = await Promise.all([
    cleanup.keep(startRedis(), (it) => it.remove()),
    // With fsync as in production.
    cleanup.keep(startPostgres(["-c", "fsync=on"]), (it) => it.remove()),
    start("load-program.ts", "load generator"),
    start("mock-program.ts", "mock provider"),
  ]);
  const databaseUrl = await createDatabase(postgres);
  const postgresTime = await withClient(postgres.url("hearth"), postgresCpu);
  const { port: mockPort } = await mock.ask<{ port: number }>({ ask: "port" });
  const bare = await start("bare-program.ts", "bare proxy", [
    `http://127.0.0.1:${mockPort}`,
  ]);
  const { port: barePort } = await bare.ask<{ port: number }>({});
  const startGateway = () =>
    startBenchGateway({
      directory,
      databaseUrl,
      redisPort: redis.port,
      providerPort: mockPort,
    });
  // The first start creates the schema; the time to readiness is measured at the second one.
  const first = await cleanup.keep(startGateway(), (it) => it.stop());
  const tenants = await createTenants(first, databaseUrl);
  await first.stop();
  const gateway = await cleanup.keep(startGateway(), (it) => it.stop());

  const targets: Target[] = [
    { name: "mock", port: mockPort, keys: [""], headers: {}, meter: null },
    {
      name: "bare",
      port: barePort,
      keys: [""],
      headers: {},
      meter: meterOf(bare),
    },
    {
      name: "gateway",
      port: gateway.port,
      keys: tenants.map(({ key }) => key),
      headers: {},
      meter: gateway.meter,
    },
  ];
  for (const peer of peers) {
    const { port, headers, meter } = await cleanup.keep(
      startPeer(peer, { directory, providerPort: mockPort }),
      (it) => it.stop(),
    );
    targets.push({ name: peer.name, port, keys: [""], headers, meter });
  }
  return {
    directory,
    databaseUrl,
    superuserUrl: postgres.url("hearth"),
    redis,
    mock,
    gateway,
    tenants,
    targets,
    serversCpu: async () =>
      postgresTime === null
        ? null
        : postgresTime() + (await redisCpu(redis.client)),
    async startGateway(name, env) {
      const place = join(directory, name);
      mkdirSync(place);
      const options = { databaseUrl, redisPort: redis.port };
      return cleanup.keep(
        startBenchGateway({
          ...options,
          directory: place,
          providerPort: mockPort,
          env,
        }),
        (it) => it.stop(),
      );
    },
    load: (target, { load: kind, schedule, salt, tenants: count }) =>
      load.ask<LoadResult>({
        load: kind,
        schedule,
        salt,
        port: target.port,
        headers: target.headers,
        keys: target.keys.slice(0, count),
      } satisfies LoadRun),
  };
}

/** Creates the database and its roles like `hearth up`; the gateway creates the schema. */
async function createDatabase(postgres: TestPostgres): Promise<string> {
  await asSuperuser(postgres.url("postgres"), [
    "CREATE DATABASE hearth",
    `CREATE ROLE gateway_a LOGIN PASSWORD '${PASSWORD}'`,
  ]);
  await asSuperuser(postgres.url("hearth"), [
    ROLES_SQL,
    "GRANT hearth_owner TO gateway_a",
    "ALTER ROLE gateway_a SET role hearth_owner",
  ]);
  const url = new URL(postgres.url("hearth"));
  url.username = "gateway_a";
  url.password = PASSWORD;
  return url.href;
}

async function asSuperuser(
  url: string,
  statements: readonly string[],
): Promise<void> {
  await withClient(url, async (client) => {
    for (const statement of statements) {
      await client.query(statement);
    }
  });
}
