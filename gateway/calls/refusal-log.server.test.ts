import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../test/servers/admin.ts";
import { hashKey } from "../access/keys.ts";
import { query } from "../database/pool.ts";
import { dropOldRefusals, KEPT_REFUSALS } from "../database/refusals.ts";

/** A change reaches the gateway by a notification, which takes longer on a busy machine. */
const PATIENT = { timeout: 20_000 };

let fixture: AdminFixture;

beforeAll(async () => {
  fixture = await startAdminFixture();
});

afterAll(() => fixture?.stop());

async function refusalsOf(key: string, as?: string) {
  await fixture.running.gateway.refusals.flush();
  return fixture.get(`/refusals?api_key=${hashKey(key)}`, as);
}

test("a rejected call is stored with its reason, and counted", async () => {
  const key = await fixture.createKey({
    key_alias: "poor",
    user_id: "poor-user",
    max_budget: 0,
  });
  await fixture.chat(key, "hello");
  await fixture.chat(key, "hello", { model: "no-such-model" });
  const log = await refusalsOf(key);
  expect(log).toMatchObject({
    total: 2,
    refusals: [
      {
        type: "invalid_request_error",
        status: 400,
        model: "no-such-model",
        message: expect.stringContaining("Invalid model name"),
      },
      {
        api_key: hashKey(key),
        key_alias: "poor",
        type: "budget_exceeded",
        model: "mock",
        message: expect.stringContaining("Budget has been exceeded"),
      },
    ],
  });
  expect((log["counts"] as unknown as unknown[]).length).toBe(2);
  expect(JSON.stringify(log)).not.toContain(key);
  // Rejected calls have no row in the ledger.
  expect(await fixture.get(`/spend/logs?api_key=${hashKey(key)}`)).toEqual([]);
});

test("the holder of the key sees a rejected call, another key does not", async () => {
  const key = await fixture.createKey({ user_id: "holder", models: ["other"] });
  const stranger = await fixture.createKey({ user_id: "stranger" });
  await fixture.chat(key, "hello");
  expect(await refusalsOf(key, key)).toMatchObject({
    total: 1,
    refusals: [{ type: "key_model_access_denied" }],
  });
  expect(await refusalsOf(key, stranger)).toMatchObject({
    total: 0,
    refusals: [],
  });
});

test("calls with a blocked key are recorded for its admins, calls with a guessed key are not", async () => {
  const key = await fixture.createKey({});
  await fixture.post("/key/block", { key });
  await expect
    .poll(async () => (await fixture.chat(key, "hello")).status, PATIENT)
    .toBe(401);
  expect(await refusalsOf(key)).toMatchObject({
    refusals: [
      { type: "auth_error", message: expect.stringContaining("blocked") },
    ],
  });
  await fixture.chat("sk-a-key-that-somebody-guessed", "hello");
  expect(await refusalsOf("sk-a-key-that-somebody-guessed")).toMatchObject({
    total: 0,
  });
});

test("the latest rejected calls of each key are stored, all are counted", async () => {
  const key = await fixture.createKey({ max_budget: 0 });
  const calls = KEPT_REFUSALS + 7;
  for (let call = 0; call < calls; call++) {
    await fixture.chat(key, `prompt ${call}`);
    if (call % 10 === 0) {
      await refusalsOf(key);
    }
  }
  const log = await refusalsOf(key);
  expect(log["total"]).toBe(calls);
  expect(log["refusals"]).toHaveLength(KEPT_REFUSALS);
  expect(await fixture.get("/refusals?page_size=5&hours=1")).toMatchObject({
    refusals: { length: 5 },
  });
});

test("old rejected calls are deleted", async () => {
  await query(
    fixture.pool,
    "UPDATE refusal_hours SET hour = hour - interval '40 days'",
  );
  await query(fixture.pool, "UPDATE refusals SET at = at - interval '40 days'");
  await dropOldRefusals(fixture.pool, 30, Date.now());
  expect(await query(fixture.pool, "SELECT 1 FROM refusals")).toEqual([]);
  expect(await query(fixture.pool, "SELECT 1 FROM refusal_hours")).toEqual([]);
});
