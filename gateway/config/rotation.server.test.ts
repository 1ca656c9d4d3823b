import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  MASTER_KEY,
  modelYaml,
  startTestGateway,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import {
  startMockProvider,
  type MockProvider,
} from "../../test/servers/provider.ts";

const NEW_MASTER_KEY = "sk-the-next-master-key-of-the-tests";
const nextRole = `gateway_${randomBytes(4).toString("hex")}`;
const handed = mkdtempSync(join(tmpdir(), "hearth-rotation-"));
let gateway: TestGateway;
let provider: MockProvider;
let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let superuser: pg.Client;

const hand = (name: string, value: string) =>
  writeFileSync(join(handed, name), value);

beforeAll(async () => {
  superuser = new pg.Client({ connectionString: inject("postgresUrl") });
  await superuser.connect();
  database = await throwAwayDatabase();
  provider = await startMockProvider();
  const names = [
    "DATABASE_URL",
    "PROXY_MASTER_KEY",
    "PROXY_MASTER_KEY_PREVIOUS",
    "PROXY_MASTER_KEY_PREVIOUS_UNTIL",
  ];
  for (const name of names) {
    hand(name, "");
  }
  hand("DATABASE_URL", database.url);
  hand("PROXY_MASTER_KEY", MASTER_KEY);
  gateway = await startTestGateway({
    databaseUrl: "",
    providerUrl: provider.url,
    yaml: `${modelYaml(provider.url)}general_settings: { store_model_in_db: true }\n`,
    env: {
      PROXY_MASTER_KEY: "",
      ...Object.fromEntries(
        names.map((name) => [`${name}_FILE`, join(handed, name)]),
      ),
    },
  });
  await storeModel("stored", MASTER_KEY);
});

afterAll(async () => {
  await gateway?.stop();
  await provider?.close();
  await database?.drop();
  await superuser?.query(`DROP ROLE IF EXISTS ${nextRole}`);
  await superuser?.end();
  rmSync(handed, { recursive: true, force: true });
});

const reload = (key: string) =>
  gateway.request("POST", "/config/reload", undefined, key);
const asks = async (key: string) =>
  (await gateway.request("GET", "/key/list", undefined, key)).status;

/** Creates a model whose provider key the master key seals. */
async function storeModel(model_name: string, key: string): Promise<void> {
  const created = await gateway.request(
    "POST",
    "/model/new",
    {
      model_name,
      litellm_params: {
        model: "openai/mock-model",
        api_base: provider.url,
        api_key: "provider-secret-key",
      },
    },
    key,
  );
  expect(created.status).toBe(200);
}

test("a rotated master key works at once, the previous one until it expires", async () => {
  hand("PROXY_MASTER_KEY", NEW_MASTER_KEY);
  hand("PROXY_MASTER_KEY_PREVIOUS", MASTER_KEY);
  hand(
    "PROXY_MASTER_KEY_PREVIOUS_UNTIL",
    new Date(Date.now() + 3_600_000).toISOString(),
  );
  expect((await reload(MASTER_KEY)).status).toBe(200);
  expect([await asks(MASTER_KEY), await asks(NEW_MASTER_KEY)]).toEqual([
    200, 200,
  ]);
  hand("PROXY_MASTER_KEY_PREVIOUS_UNTIL", new Date().toISOString());
  expect((await reload(NEW_MASTER_KEY)).status).toBe(200);
  expect([await asks(MASTER_KEY), await asks(NEW_MASTER_KEY)]).toEqual([
    401, 200,
  ]);
  hand("PROXY_MASTER_KEY_PREVIOUS", "");
  hand("PROXY_MASTER_KEY_PREVIOUS_UNTIL", "");
  expect((await reload(NEW_MASTER_KEY)).status).toBe(200);
  // All stored models are read again.
  await storeModel("another", NEW_MASTER_KEY);
  const answer = await gateway.chat(NEW_MASTER_KEY, "hello", {
    model: "stored",
  });
  expect(answer.status).toBe(200);
});

test("a changed login of the same database takes effect without a restart", async () => {
  await superuser.query(
    `CREATE ROLE ${nextRole} LOGIN PASSWORD 'the-next-password' IN ROLE hearth_owner`,
  );
  await superuser.query(`ALTER ROLE ${nextRole} SET role hearth_owner`);
  const url = new URL(database.url);
  url.username = nextRole;
  url.password = "the-next-password";
  hand("DATABASE_URL", url.href);
  const reloaded = await reload(NEW_MASTER_KEY);
  expect(JSON.parse(reloaded.text)).toMatchObject({ need_restart: [] });
  // Each open connection runs one more statement: those of calls look a key up.
  const logins = async () => {
    const statuses = await Promise.all(
      Array.from({ length: 10 }, async () => [
        await asks(NEW_MASTER_KEY),
        await asks(`sk-${randomBytes(16).toString("hex")}`),
      ]),
    );
    expect(new Set(statuses.flat())).toEqual(new Set([200, 401]));
    const { rows } = await superuser.query<{ usename: string }>(
      `SELECT DISTINCT usename FROM pg_stat_activity
        WHERE datname = $1 AND application_name = 'hearth-gateway'`,
      [new URL(database.url).pathname.slice(1)],
    );
    return rows.map(({ usename }) => usename);
  };
  await expect.poll(logins, { timeout: 20_000 }).toEqual([nextRole]);
});
