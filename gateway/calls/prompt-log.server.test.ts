import { afterAll, beforeAll, expect, test } from "vitest";
import {
  modelYaml,
  startTestbed,
  type Testbed,
  type TestAnswer,
} from "../../test/servers/gateway.ts";
import { dropOldPrompts } from "../database/retention.ts";
import { query } from "../database/pool.ts";

let testbed: Testbed;

beforeAll(async () => {
  testbed = await startTestbed(
    (url) =>
      `${modelYaml(url)}proxy_settings: { cache: true }\ngeneral_settings: { store_prompts_in_spend_logs: true }\n`,
  );
});

afterAll(() => testbed?.stop());

async function rowOf(answer: TestAnswer) {
  const { ledger, prompts } = testbed.gateway.running.gateway;
  // A stream's call is recorded before its last byte, so it is in the journal by now.
  await ledger.flush();
  await prompts.flush();
  const id = answer.headers.get("x-hearth-call-id");
  const logs = await testbed.gateway.request(
    "GET",
    `/spend/logs?request_id=${id}`,
  );
  return (logs.json as unknown as Record<string, unknown>[])[0];
}

test("prompts and answers are kept with their rows: whole, streamed and from the cache", async () => {
  const { gateway } = testbed;
  const key = await gateway.createKey({});
  const whole = await gateway.chat(key, "what? \u0000 \ud800");
  expect(await rowOf(whole)).toMatchObject({
    messages: [{ role: "user", content: expect.stringContaining("what?") }],
    response: { choices: [{ message: { content: "four words in here" } }] },
  });
  const streamed = await gateway.chat(key, "stream it", { stream: true });
  expect(await rowOf(streamed)).toMatchObject({
    messages: [{ content: "stream it" }],
    response: "word0 word1 word2 word3 ",
  });
  await gateway.chat(key, "twice");
  expect(await rowOf(await gateway.chat(key, "twice"))).toMatchObject({
    cache_hit: "True",
    response: { choices: [{ message: { content: "four words in here" } }] },
  });
});

test("prompts are deleted with the retention of the rows", async () => {
  const { pool } = testbed.gateway.running.gateway;
  await query(
    pool,
    "UPDATE prompts SET started_at = now() - interval '9 days'",
  );
  const fresh = await testbed.gateway.chat(
    await testbed.gateway.createKey({}),
    "fresh",
  );
  await rowOf(fresh);
  await dropOldPrompts(pool, 8, Date.now());
  expect(await query(pool, "SELECT request_id FROM prompts")).toEqual([
    { request_id: fresh.headers.get("x-hearth-call-id") },
  ]);
});

test("without the setting no prompt is stored anywhere", async () => {
  const silent = await startTestbed();
  try {
    const { gateway } = silent;
    await gateway.chat(await gateway.createKey({}), "my secret question");
    await gateway.running.gateway.ledger.flush();
    await gateway.running.gateway.prompts.flush();
    const { pool } = gateway.running.gateway;
    expect(await query(pool, "SELECT * FROM prompts")).toEqual([]);
    const logs = await gateway.request("GET", "/spend/logs");
    expect(logs.text).not.toContain("my secret question");
  } finally {
    await silent.stop();
  }
});
