import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
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
import { startRelay, type Relay } from "../../test/servers/relay.ts";
import { postgresWire } from "../../test/servers/wire-postgres.ts";

// Postgres behind a link that drops all data: connections stay open and no statement is answered.
let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let provider: MockProvider;
let relay: Relay;
let gateway: TestGateway;

beforeAll(async () => {
  database = await throwAwayDatabase();
  provider = await startMockProvider();
  const url = new URL(database.url);
  relay = await startRelay(Number(url.port), postgresWire);
  url.port = String(relay.port);
  gateway = await startTestGateway({
    databaseUrl: url.href,
    providerUrl: provider.url,
    yaml: modelYaml(provider.url),
  });
});

afterAll(async () => {
  relay?.restore();
  await stopGateway();
  await provider?.close();
  await relay?.close();
  await database?.drop();
});

let stopping: Promise<void> | undefined;
function stopGateway(): Promise<void> | undefined {
  return (stopping ??= gateway?.stop());
}

/** Far above every deadline, far below the limit of an ordinary statement. */
const HANGS_AFTER_MS = 12_000;

async function ask(path: string, key: string, body?: unknown) {
  const answer = await fetch(gateway.url + path, {
    method: body === undefined ? "GET" : "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(HANGS_AFTER_MS),
  });
  return { status: answer.status, text: await answer.text() };
}

function call(key: string, fields: Readonly<Record<string, unknown>> = {}) {
  return ask("/v1/chat/completions", key, {
    model: "mock",
    messages: [{ role: "user", content: "hello" }],
    ...fields,
  });
}

async function untilReadinessSays(db: string): Promise<void> {
  const said = async () => (await ask("/health/readiness", MASTER_KEY)).text;
  await expect.poll(said).toContain(`"db":"${db}"`);
}

test("while Postgres does not answer, known keys are served, also in a new window, and others get 503", async () => {
  const known = await gateway.createKey({
    max_budget: 1,
    budget_duration: "1s",
  });
  const plain = await gateway.createKey();
  expect((await call(known)).status).toBe(200);
  expect((await call(plain)).status).toBe(200);
  relay.stall();
  // Before the probe has noticed, and with an end user and a tag that were never looked up.
  const first = await Promise.all([
    call(plain, { user: "somebody", metadata: { tags: ["new"] } }),
    call("sk-never-seen-before"),
    ask("/key/list", MASTER_KEY),
  ]);
  expect(first.map(({ status }) => status)).toEqual([200, 503, 503]);
  // A change may have reached Postgres, so the sentence does not deny it.
  expect(first[2].text).toContain(
    '"The database is unavailable. Try again in a moment."',
  );
  await untilReadinessSays("Not connected");
  await sleep(1_100);
  const later = await Promise.all([
    call(known),
    call(plain),
    call("sk-never-seen-before"),
    ask("/key/list", MASTER_KEY),
  ]);
  expect(later.map(({ status }) => status)).toEqual([200, 200, 503, 503]);
  expect((await ask("/health/readiness", MASTER_KEY)).status).toBe(200);
  relay.restore();
  await untilReadinessSays("connected");
  expect((await call("sk-never-seen-before")).status).toBe(401);
  expect((await call(known)).status).toBe(200);
  await gateway.running.gateway.ledger.flush();
  const check = await gateway.request("GET", "/spend/check");
  expect(check.text).toContain('"status":"equal"');
});

test("a gateway stops while Postgres does not answer", async () => {
  relay.stall();
  await untilReadinessSays("Not connected");
  const stopped = stopGateway()?.then(() => "stopped");
  const hangs = sleep(HANGS_AFTER_MS, "hangs", { ref: false });
  expect(await Promise.race([stopped, hangs])).toBe("stopped");
});
