import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  emptyDatabase,
  gatewayUrl,
  prepareTemplate,
} from "../../test/servers/database.ts";
import { createGatewayProcess } from "../../test/servers/gateway-process.ts";
import {
  INPUT_PRICE,
  modelYaml,
  OUTPUT_PRICE,
  startTestGateway,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import {
  hasPgbouncer,
  startPgbouncer,
  type TestPgbouncer,
} from "../../test/servers/pgbouncer.ts";
import {
  startPostgres,
  type TestPostgres,
} from "../../test/servers/postgres.ts";
import {
  startMockProvider,
  type MockProvider,
} from "../../test/servers/provider.ts";
import {
  hasRedisServer,
  startRedis,
  type TestRedis,
} from "../../test/servers/redis.ts";
import { hashKey } from "../access/keys.ts";
import { query, transaction } from "./pool.ts";
import { withClient } from "../../test/servers/with-client.ts";

const CALL_COST = 10 * INPUT_PRICE + 4 * OUTPUT_PRICE;
/** Far below the time after which a gateway reads again what it knows. */
const NOTIFIED = { timeout: 20_000, interval: 50 };

let postgres: TestPostgres;
let direct: string;
let provider: MockProvider;

beforeAll(async () => {
  // Of its own: it is killed and restarted.
  postgres = await startPostgres();
  await prepareTemplate(postgres);
  direct = gatewayUrl(postgres.url("hearth"));
  provider = await startMockProvider();
});

afterAll(async () => {
  await provider?.close();
  await postgres?.remove();
});

describe.runIf(hasPgbouncer() && hasRedisServer())(
  "two gateways behind a pooler in transaction mode",
  () => {
    let pgbouncer: TestPgbouncer;
    let redis: TestRedis;
    let one: TestGateway;
    let other: TestGateway;

    beforeAll(async () => {
      pgbouncer = await startPgbouncer(direct);
      redis = await startRedis();
      const start = () =>
        startTestGateway({
          databaseUrl: pgbouncer.through(direct),
          providerUrl: provider.url,
          env: {
            DATABASE_DIRECT_URL: direct,
            REDIS_HOST: "127.0.0.1",
            REDIS_PORT: String(redis.port),
          },
        });
      one = await start();
      other = await start();
    });

    afterAll(async () => {
      await one?.stop();
      await other?.stop();
      await redis?.remove();
      await pgbouncer?.remove();
    });

    let prompts = 0;
    const statusAt = async (gateway: TestGateway, key: string) =>
      (await gateway.chat(key, `prompt ${++prompts}`)).status;

    /** Calls of a key in the ledger and their sum, once both gateways have recorded theirs. */
    async function recorded(key: string) {
      await one.running.gateway.ledger.flush();
      await other.running.gateway.ledger.flush();
      const [rows] = await query<{ calls: number; spend: number }>(
        one.running.gateway.pool,
        "SELECT count(*) AS calls, sum(spend)::float AS spend FROM spend_log WHERE api_key = $1",
        [hashKey(key)],
      );
      return rows;
    }

    const checked = () =>
      query(one.running.gateway.pool, "SELECT * FROM spend_check");

    test("both count as instances, and a budget is exact across them", async () => {
      await expect
        .poll(() => one.running.gateway.database.instances(), NOTIFIED)
        .toBe(2);
      const key = await one.createKey({ max_budget: 4 * CALL_COST });
      for (const gateway of [one, other, one, other]) {
        expect(await statusAt(gateway, key)).toBe(200);
      }
      expect(await statusAt(one, key)).toBe(400);
      expect(await statusAt(other, key)).toBe(400);
      expect(await recorded(key)).toEqual({
        calls: 4,
        spend: expect.closeTo(4 * CALL_COST, 9),
      });
    });

    test("more concurrent calls than connections are recorded exactly", async () => {
      const key = await one.createKey();
      const statuses = await Promise.all(
        Array.from({ length: 60 }, (_, call) =>
          statusAt(call % 2 === 0 ? one : other, key),
        ),
      );
      expect(new Set(statuses)).toEqual(new Set([200]));
      expect(await recorded(key)).toEqual({
        calls: 60,
        spend: expect.closeTo(60 * CALL_COST, 9),
      });
      expect(await checked()).toEqual([]);
    });

    test("a change of a key and of a model reaches the other gateway", async () => {
      const key = await one.createKey();
      expect(await statusAt(other, key)).toBe(200);
      const made = await one.request("POST", "/model/new", {
        model_name: "added",
        provider_params: {
          model: "openai/added",
          api_base: provider.url,
          api_key: "x",
        },
      });
      expect(made.status).toBe(200);
      const added = async () =>
        (await other.chat(key, `p ${++prompts}`, { model: "added" })).status;
      await expect.poll(added, NOTIFIED).toBe(200);
      await one.request("POST", "/key/block", { key });
      await expect.poll(() => statusAt(other, key), NOTIFIED).toBe(401);
    });

    test("statements keep their time limits, and leave none on a connection of the pooler", async () => {
      const { pool, callPool } = one.running.gateway;
      const limit = "SHOW statement_timeout";
      expect(await query(pool, limit)).toEqual([{ statement_timeout: "30s" }]);
      expect(await query(callPool, limit)).toEqual([
        { statement_timeout: "2s" },
      ]);
      const idle = await transaction(pool, (client) =>
        query(client, "SHOW idle_in_transaction_session_timeout"),
      );
      expect(idle).toEqual([{ idle_in_transaction_session_timeout: "15s" }]);
      const { rows } = await withClient(pgbouncer.through(direct), (client) =>
        client.query(limit),
      );
      expect(rows).toEqual([{ statement_timeout: "0" }]);
    });

    test("known keys work while the pooler is away, and their calls are recorded once", async () => {
      const key = await one.createKey();
      expect(await statusAt(one, key)).toBe(200);
      await pgbouncer.stop();
      expect(await statusAt(one, key)).toBe(200);
      const unknown = () => statusAt(one, "sk-never-seen-before");
      expect(await unknown()).toBe(503);
      await pgbouncer.start();
      await expect.poll(unknown, NOTIFIED).toBe(401);
      await expect
        .poll(() => recorded(key).catch(() => undefined), NOTIFIED)
        .toEqual({ calls: 2, spend: expect.closeTo(2 * CALL_COST, 9) });
      expect(await checked()).toEqual([]);
    });

    test("calls while Postgres is killed and restarted are recorded once", async () => {
      const key = await one.createKey();
      expect(await statusAt(one, key)).toBe(200);
      expect(await statusAt(other, key)).toBe(200);
      await postgres.stop("SIGQUIT");
      for (let calls = 0; calls < 4; calls++) {
        expect(await statusAt(calls % 2 === 0 ? one : other, key)).toBe(200);
      }
      await postgres.start();
      for (const gateway of [one, other]) {
        await expect
          .poll(() => gateway.running.gateway.database.connected(), NOTIFIED)
          .toBe(true);
      }
      await expect
        .poll(() => recorded(key).catch(() => undefined), NOTIFIED)
        .toEqual({ calls: 6, spend: expect.closeTo(6 * CALL_COST, 9) });
      expect(await checked()).toEqual([]);
      // Announced on the new connections.
      await one.request("POST", "/key/block", { key });
      await expect.poll(() => statusAt(other, key), NOTIFIED).toBe(401);
    });
  },
);

test.runIf(hasPgbouncer())(
  "the schema of an empty database is created behind a pooler",
  async () => {
    const empty = await emptyDatabase();
    const pgbouncer = await startPgbouncer(empty.url);
    try {
      const gateway = await startTestGateway({
        databaseUrl: pgbouncer.through(empty.url),
        providerUrl: provider.url,
        env: { DATABASE_DIRECT_URL: empty.url },
      });
      const { pool } = gateway.running.gateway;
      expect(await query(pool, "SELECT * FROM spend_check")).toEqual([]);
      await gateway.stop();
    } finally {
      await pgbouncer.remove();
      await empty.drop();
    }
  },
);

describe.runIf(hasPgbouncer())("an address that does not fit", () => {
  let pgbouncer: TestPgbouncer;

  beforeAll(async () => {
    pgbouncer = await startPgbouncer(direct);
  });
  afterAll(() => pgbouncer?.remove());

  /** What a gateway with these addresses prints before it ends. */
  async function refusal(
    databaseUrl: string,
    env: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    const gateway = await createGatewayProcess({
      yaml: modelYaml(provider.url),
      databaseUrl,
      env,
    });
    try {
      gateway.launch();
      expect(await gateway.exited()).toBe(1);
      expect(gateway.output()).not.toContain("gateway-test-password");
      return /^hearth: (.*)$/m.exec(gateway.output())?.[1] ?? gateway.output();
    } finally {
      await gateway.remove();
    }
  }

  const ADVICE =
    "set DATABASE_DIRECT_URL to the address of Postgres itself, without the pooler.";

  test("a gateway with only a pooler in transaction mode names DATABASE_DIRECT_URL and ends", async () => {
    expect(await refusal(pgbouncer.through(direct))).toBe(
      `DATABASE_URL leads to a connection pooler in transaction mode, which loses locks and notifications: ${ADVICE}`,
    );
  });

  test("a direct address that leads to the pooler too is reported", async () => {
    const pooled = pgbouncer.through(direct);
    const url = `${pooled}?fallback_application_name=hearth`;
    expect(await refusal(pooled, { DATABASE_DIRECT_URL: url })).toBe(
      `DATABASE_DIRECT_URL leads to a connection pooler in transaction mode, which loses locks and notifications: ${ADVICE}`,
    );
  });

  test("a direct address of another database is reported", async () => {
    const env = { DATABASE_DIRECT_URL: gatewayUrl(postgres.url("postgres")) };
    expect(await refusal(pgbouncer.through(direct), env)).toBe(
      "DATABASE_DIRECT_URL leads to another database or server than DATABASE_URL: give both the address of the same database, one through the connection pooler and one without it.",
    );
  });

  test("a pooler in session mode needs no second address if it accepts the gateway's parameters", async () => {
    const session = { pool_mode: "session", default_pool_size: 30 };
    const rejecting = await startPgbouncer(direct, session);
    const accepting = await startPgbouncer(direct, {
      ...session,
      ignore_startup_parameters:
        "statement_timeout,idle_in_transaction_session_timeout",
    });
    try {
      expect(await refusal(rejecting.through(direct))).toBe(
        `DATABASE_URL leads to a connection pooler (unsupported startup parameter: statement_timeout): ${ADVICE}`,
      );
      const gateway = await startTestGateway({
        databaseUrl: accepting.through(direct),
        providerUrl: provider.url,
      });
      await gateway.stop();
    } finally {
      await rejecting.remove();
      await accepting.remove();
    }
  });
});
