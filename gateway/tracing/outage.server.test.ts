import { afterEach, beforeEach, expect, test } from "vitest";
import {
  startCollector,
  type Collector,
} from "../../test/servers/collector.ts";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  startTestGateway,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import {
  startMockProvider,
  type MockProvider,
} from "../../test/servers/provider.ts";
import { query } from "../database/pool.ts";

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let provider: MockProvider;
let collector: Collector;
let gateway: TestGateway;
let isStopped: boolean;
let key: string;

/** The machine may be busy. */
const SOON = { timeout: 60_000 };

beforeEach(async () => {
  isStopped = false;
  database = await throwAwayDatabase();
  provider = await startMockProvider();
  collector = await startCollector();
  gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: provider.url,
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/otlp`,
      OTEL_EXPORTER_OTLP_HEADERS: "X-Vendor=a%20b, x-other = c",
      OTEL_EXPORTER_OTLP_TIMEOUT: "300",
      OTEL_SERVICE_NAME: "from-the-environment",
    },
  });
  key = await gateway.createKey({});
});

afterEach(async () => {
  await stop();
  await collector?.close();
  await provider?.close();
  await database?.drop();
});

async function stop(): Promise<void> {
  if (!isStopped) {
    isStopped = true;
    await gateway?.stop();
  }
}

async function callTimes(count: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    expect((await gateway.chat(key, `call ${at}`)).status).toBe(200);
  }
}

const counts = () => gateway.running.gateway.traces?.counts()[0];

/** Calls in the ledger. */
async function ledgerRows(): Promise<number> {
  const { ledger, pool } = gateway.running.gateway;
  await ledger.flush();
  const [counted] = await query<{ rows: string }>(
    pool,
    "SELECT count(*) AS rows FROM spend_log",
  );
  return Number(counted?.rows);
}

test("a collector that hangs, fails and returns costs spans, but no call", async () => {
  collector.mode = "hang";
  await callTimes(20);
  expect(await ledgerRows()).toBe(20);
  await expect.poll(() => counts()?.failed, SOON).toBe(40);

  collector.mode = 400;
  await callTimes(5);
  await expect.poll(() => counts()?.failed, SOON).toBe(50);

  collector.mode = 200;
  await callTimes(5);
  await expect.poll(() => counts()?.exported, SOON).toBe(10);
  expect(counts()).toMatchObject({ failed: 50, overflowed: 0, waiting: 0 });
  expect(collector.requests.at(-1)).toMatchObject({
    path: "/otlp/v1/traces",
    headers: { "x-vendor": "a b", "x-other": "c" },
  });
  expect(collector.spans[0]?.resource["service.name"]).toBe(
    "from-the-environment",
  );
  const { text } = await gateway.request("GET", "/metrics");
  expect(text).toMatch(
    /hearth_spans_dropped_total\{[^}]*reason="export_failed"[^}]*\} 50/,
  );
});

test("a dead collector neither delays the calls nor the stop", async () => {
  await collector.close();
  await callTimes(20);
  expect(await ledgerRows()).toBe(20);
  await stop();
});

test("what waits is exported when the gateway stops", async () => {
  await callTimes(3);
  await stop();
  expect(collector.spans).toHaveLength(6);
});
