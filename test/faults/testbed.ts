import { randomBytes } from "node:crypto";
import type { Redis } from "ioredis";
import pg from "pg";
import { setTimeout as sleep } from "node:timers/promises";
import { gatewayUrl, prepareTemplate } from "../servers/database.ts";
import { MASTER_KEY, modelYaml } from "../servers/gateway.ts";
import {
  createGatewayProcess,
  type GatewayProcess,
} from "../servers/gateway-process.ts";
import { startPostgres, type TestPostgres } from "../servers/postgres.ts";
import {
  startProviderProcess,
  type ProviderProcess,
} from "../servers/provider-process.ts";
import { startRedis, type TestRedis } from "../servers/redis.ts";
import type { TestSentinels } from "../servers/sentinel.ts";
import { startRelay, type Relay } from "../servers/relay.ts";
import { postgresWire } from "../servers/wire-postgres.ts";
import { redisWire } from "../servers/wire-redis.ts";

/** A gateway process with the relays in front of its Postgres and its Redis. */
export interface Member extends GatewayProcess {
  /** The part of the provider's paths that identifies it. */
  readonly name: string;
  readonly postgresRelay: Relay;
  readonly redisRelay: Relay | null;
}

/** The real servers of a campaign: Postgres, Redis, a provider and gateways, each in a separate process. */
export interface Testbed {
  /** null also under sentinels. */
  readonly redis: TestRedis | null;
  /** null: the limits are in memory. */
  readonly redisClient: Redis | null;
  readonly provider: ProviderProcess;
  readonly gateways: readonly Member[];
  /** Runs a query as superuser, bypassing the relays. */
  sql<Row extends pg.QueryResultRow>(
    text: string,
    values?: readonly unknown[],
  ): Promise<readonly Row[]>;
  /** Sends one request with the master key. */
  admin(
    gateway: GatewayProcess,
    path: string,
    body?: unknown,
  ): Promise<{ readonly status: number; readonly text: string }>;
  /** Waits until all journaled calls of the gateways are in the ledger. */
  drained(): Promise<void>;
  close(): Promise<void>;
}

export interface TestbedOptions {
  readonly gateways: number;
  /** Sentinels: Redis is theirs, without relays. */
  readonly redis: boolean | TestSentinels;
  /** Appended to the configuration of each gateway. */
  readonly yaml?: string;
  /** Additional variables of each gateway. */
  readonly env?: Readonly<Record<string, string>>;
  /** false: the gateways are created but not started. */
  readonly start?: boolean;
}

const DRAINED_WITHIN_MS = 60_000;

/** Starts a separate Postgres with the migrated template, for successive testbeds. */
export async function startTestbedPostgres(): Promise<TestPostgres> {
  const postgres = await startPostgres();
  try {
    await prepareTemplate(postgres);
  } catch (error) {
    await postgres.remove();
    throw error;
  }
  return postgres;
}

/** `postgres`: the URL of the server as superuser. */
export async function openTestbed(
  postgres: string,
  options: TestbedOptions,
): Promise<Testbed> {
  const closing: (() => Promise<void>)[] = [];
  async function close(): Promise<void> {
    for (const end of closing.splice(0).reverse()) {
      await end();
    }
  }
  try {
    return await open(postgres, options, closing, close);
  } catch (error) {
    await close();
    throw error;
  }
}

async function open(
  postgres: string,
  options: TestbedOptions,
  closing: (() => Promise<void>)[],
  close: () => Promise<void>,
): Promise<Testbed> {
  const database = `faults_${randomBytes(6).toString("hex")}`;

  function databaseUrl(name: string): string {
    const url = new URL(postgres);
    url.pathname = `/${name}`;
    return url.href;
  }

  async function sql<Row extends pg.QueryResultRow>(
    text: string,
    values: readonly unknown[] = [],
    from = database,
  ): Promise<readonly Row[]> {
    const client = new pg.Client({ connectionString: databaseUrl(from) });
    client.on("error", () => undefined);
    await client.connect();
    try {
      return (await client.query<Row>(text, [...values])).rows;
    } finally {
      await client.end();
    }
  }

  await sql(
    `CREATE DATABASE ${database} TEMPLATE hearth OWNER hearth_owner`,
    [],
    "postgres",
  );
  closing.push(async () => {
    await sql(`DROP DATABASE ${database} WITH (FORCE)`, [], "postgres").catch(
      () => undefined,
    );
  });
  const sentinels = typeof options.redis === "object" ? options.redis : null;
  const redis = options.redis === true ? await startRedis() : null;
  if (redis !== null) {
    closing.push(redis.remove);
  }
  const provider = await startProviderProcess();
  closing.push(provider.stop);

  const gateways: Member[] = [];
  for (let at = 0; at < options.gateways; at++) {
    const postgresRelay = await startRelay(
      Number(new URL(postgres).port),
      postgresWire,
    );
    closing.push(postgresRelay.close);
    const redisRelay =
      redis === null ? null : await startRelay(redis.port, redisWire);
    if (redisRelay !== null) {
      closing.push(redisRelay.close);
    }
    const url = new URL(gatewayUrl(databaseUrl(database)));
    url.port = String(postgresRelay.port);
    const name = `gateway-${at}`;
    const member = await createGatewayProcess({
      yaml: modelYaml(provider.urlFor(name)) + (options.yaml ?? ""),
      databaseUrl: url.href,
      ...(redisRelay === null ? {} : { redisPort: redisRelay.port }),
      env: { ...sentinelVariables(sentinels), ...options.env },
    });
    closing.push(member.remove);
    gateways.push({ ...member, name, postgresRelay, redisRelay });
  }
  if (options.start !== false) {
    await Promise.all(gateways.map((gateway) => gateway.start()));
  }

  async function pendingRows(gateway: GatewayProcess): Promise<number> {
    const answer = await fetch(`${gateway.url}/health/readiness`);
    const { journal } = (await answer.json()) as {
      journal: { pending: number };
    };
    return answer.status === 200 ? journal.pending : Infinity;
  }

  return {
    redis,
    redisClient: sentinels?.client ?? redis?.client ?? null,
    provider,
    gateways,
    sql: (text, values) => sql(text, values),
    async admin(gateway, path, body) {
      const answer = await fetch(gateway.url + path, {
        method: body === undefined ? "GET" : "POST",
        headers: {
          authorization: `Bearer ${MASTER_KEY}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: answer.status, text: await answer.text() };
    },
    async drained() {
      const until = performance.now() + DRAINED_WITHIN_MS;
      // Two consecutive reads: between two batches a journal may briefly look drained.
      for (let quiet = 0; quiet < 2;) {
        const pending = await Promise.all(
          gateways
            .filter((gateway) => gateway.running())
            .map((gateway) => pendingRows(gateway).catch(() => Infinity)),
        );
        quiet = pending.every((rows) => rows === 0) ? quiet + 1 : 0;
        if (performance.now() > until) {
          throw new Error(
            `journals not drained: ${pending.join(", ")} rows pending; ${gateways.map((gateway) => gateway.output().slice(-1_000)).join("\n")}`,
          );
        }
        await sleep(100);
      }
    },
    close,
  };
}

function sentinelVariables(
  sentinels: TestSentinels | null,
): Readonly<Record<string, string>> {
  return sentinels === null
    ? {}
    : {
        REDIS_SENTINELS: sentinels.ports
          .map((port) => `127.0.0.1:${port}`)
          .join(","),
        REDIS_MASTER_NAME: sentinels.masterName,
      };
}
