import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../../test/servers/admin.ts";
import type { Json } from "../../../test/servers/gateway.ts";
import {
  startMockProvider,
  type MockProvider,
} from "../../../test/servers/provider.ts";
import { hashKey } from "../../access/keys.ts";
import { query } from "../../database/pool.ts";
import { conditions } from "../paging.ts";
import { searchCalls } from "./call-search.ts";

let fixture: AdminFixture;
let broken: MockProvider;
let good: MockProvider;
let anna: string;
let bob: string;

const START = Date.parse("2026-03-10T12:00:00Z");

function at(second: number, ms = 500) {
  return {
    started_at: new Date(START + second * 1_000).toISOString(),
    ended_at: new Date(START + second * 1_000 + ms).toISOString(),
  };
}

beforeAll(async () => {
  broken = await startMockProvider({ alwaysStatus: 500 });
  good = await startMockProvider();
  fixture = await startAdminFixture(`
  - model_name: shaky
    provider_params: { model: openai/mock-model, api_base: "${broken.url}", api_key: x }
  - model_name: mock-prompted
    provider_params: { model: openai/mock-model, api_base: "${good.url}", api_key: x, input_cost_per_token: 1.5e-7, output_cost_per_token: 6e-7, cache_read_input_token_cost: 7.5e-8, output_cost_per_reasoning_token: 1.2e-6, input_cost_per_request: 0.0021 }
router_settings: { num_retries: 1, retry_after: 0, fallbacks: [{ shaky: [mock] }] }
`);
  await fixture.post("/team/new", { team_id: "t1", team_alias: "Home" });
  anna = await fixture.createKey({ user_id: "anna", key_alias: "anna-laptop" });
  bob = await fixture.createKey({ key_alias: "office", team_id: "t1" });
  const hers = { api_key: hashKey(anna), user_id: "anna" };
  const his = { api_key: hashKey(bob), team_id: "t1" };
  await fixture.spend(
    { ...hers, ...at(1), request_id: "a", spend: 0.3, tags: ["blue", "red"] },
    { ...hers, ...at(2, 31_000), request_id: "b", model_group: "big" },
    {
      ...hers,
      ...at(3),
      request_id: "c",
      spend: 0,
      status: "failure",
      metadata: {
        error_information: { error_code: "429", error_message: "Slow DOWN ?" },
      },
    },
    { ...his, ...at(4), request_id: "d", spend: 0.001, provider: "anthropic" },
    { ...his, ...at(4), request_id: "e", spend: 0.2, tags: ["red"] },
    { ...his, ...at(5), request_id: "f", status: "interrupted", spend: 0.15 },
  );
});
afterAll(async () => {
  await fixture?.stop();
  await broken?.close();
  await good?.close();
});

const DAY = "start_date=2026-03-10&end_date=2026-03-10";
const idsOf = ({ data }: Json) =>
  (data as unknown as Json[]).map((row) => row["request_id"]).join("");
const found = async (filters: string, key?: string) =>
  idsOf(await fixture.get(`/spend/calls?${DAY}&${filters}`, key));

test.each([
  ["", "fedcba"],
  ["key=anna-laptop", "cba"],
  ["user=anna", "cba"],
  ["team=Home", "fed"],
  ["model=big", "b"],
  ["provider=anthropic", "d"],
  ["status=failure", "c"],
  ["status=interrupted", "f"],
  ["status=success", "edba"],
  ["min_spend=0.2", "eba"],
  ["min_spend=0.0005", "fedba"],
  ["min_duration_ms=31000", "b"],
  ["min_duration_ms=400", "fedcba"],
  ["tag=red", "ea"],
  ["error=slow%20down%20%3F", "c"],
  ["error=slow&user=anna&status=failure", "c"],
  ["tag=red&min_spend=0.1&team=t1", "e"],
  ["tag=red&key=anna-laptop&min_spend=0.1&status=success&model=mock", "a"],
  ["tag=blue&team=Home", ""],
])("calls by %s", async (filters, ids) => {
  expect(await found(filters)).toBe(ids);
});

test("a key is found by its hash, its text and after its rotation", async () => {
  const key = await fixture.createKey({ key_alias: "turning" });
  await fixture.spend({ api_key: hashKey(key), ...at(6), request_id: "g" });
  const rotated = await fixture.post("/key/regenerate", { key });
  const now = String(rotated["key"]);
  await fixture.spend({ api_key: hashKey(now), ...at(7), request_id: "h" });
  for (const named of [now, hashKey(now), hashKey(key), "turning"]) {
    expect(await found(`key=${named}`)).toBe("hg");
    expect(await found(`key=${named}&page_size=1`)).toBe("h");
  }
});

test.each([
  [
    "key=ana-laptop",
    "key",
    '"ana-laptop" is unknown (did you mean "anna-laptop"?)',
  ],
  ["user=nobody-at-all", "user", '"nobody-at-all" is unknown.'],
  ["team=Hone", "team", '(did you mean "Home"?)'],
  ["model=bigg", "model", '"bigg" is unknown'],
  ["provider=antropic", "provider", '(did you mean "anthropic"?)'],
  ["tag=rad", "tag", '(did you mean "red"?)'],
  ["status=ok", "status", "must be success, failure or interrupted"],
  ["min_spend=much", "min_spend", "must be a number of dollars such as 0.05"],
  ["min_duration_ms=1.5", "min_duration_ms", "must be a whole number"],
  ["start_date=2026-02-30", "start_date", "must be a day"],
  ["older=nonsense", "older", "must be the `older` of an answer"],
  ["older=2026-13-45T99:00:00.000000Z,a", "older", "must be the `older`"],
])("%s is rejected with a clear error", async (filters, param, message) => {
  const { status, error } = await fixture.rejected(
    "GET",
    `/spend/calls?${filters}`,
  );
  expect(status).toBe(400);
  expect(error).toMatchObject({ param });
  expect(String(error["message"])).toContain(message);
});

test("pages continue in both directions, each call once", async () => {
  for (const filters of ["", "team=Home&", "min_spend=0.0001&"]) {
    const all = await found(filters);
    const ask = (more: string) =>
      fixture.get(`/spend/calls?${DAY}&${filters}page_size=2${more}`);
    const pages: Json[] = [await ask("")];
    while (pages.at(-1)?.["older"] !== null) {
      const older = encodeURIComponent(String(pages.at(-1)?.["older"]));
      pages.push(await ask(`&older=${older}`));
    }
    expect(pages.map(idsOf).join("")).toBe(all);
    const back = encodeURIComponent(String(pages.at(-1)?.["newer"]));
    const before = await ask(`&newer=${back}`);
    expect(idsOf(before)).toBe(pages.map(idsOf).at(-2));
  }
});

test("names of recent calls, and of what is selected, are added for a form", async () => {
  const path = `/spend/calls?${DAY}&key=${hashKey(anna)}&team=t1`;
  expect(await fixture.get(`${path}&with_names=true`)).toMatchObject({
    names: { key: "anna-laptop", user: null, team: "Home" },
  });
  expect(await fixture.get(path)).toMatchObject({
    models: [],
    names: { key: null, user: null, team: null },
  });
});

test("a search that stops early says where it continues, whatever leads it", async () => {
  const { pool } = fixture.running.gateway;
  const key = hashKey(anna);
  const equal =
    (text: string, value: unknown) => (to: ReturnType<typeof conditions>) =>
      to.and(text, value);
  const search = {
    drivers: [],
    filters: [equal("l.model_group = ?", "big")],
    range: equal("l.started_at < ?::timestamptz", "2026-03-11"),
    order: "desc",
    size: 5,
  } as const;
  const seen: string[] = [];
  let from: Awaited<ReturnType<typeof searchCalls>>["next"] = null;
  let pages = 0;
  do {
    const page = await searchCalls(
      { pool },
      { ...search, from },
      { searchMs: 0, chunk: 2 },
    );
    seen.push(...page.calls.map(({ requestId }) => requestId));
    from = page.next;
    pages += 1;
  } while (from !== null);
  expect(seen).toEqual(["b"]);
  expect(pages).toBeGreaterThan(2);
  const both = await searchCalls(
    { pool },
    {
      ...search,
      filters: [],
      from: null,
      drivers: [
        {
          branches: [
            equal("l.user_id = ?", "anna"),
            equal("l.api_key = ?", key),
          ],
          condition: null,
        },
        {
          branches: [
            equal("l.status <> 'success' AND l.status = ?", "failure"),
          ],
          condition: equal("l.status = ?", "failure"),
        },
      ],
    },
    { searchMs: 1_000, chunk: 2 },
  );
  expect(both).toEqual({
    calls: [{ at: "2026-03-10T12:00:03.000000Z", requestId: "c" }],
    next: null,
  });
});

test("each role sees what it may see of the ledger", async () => {
  expect(await found("", anna)).toBe("cba");
  expect(await found("", bob)).toBe("fed");
  // Names of others are names without calls.
  expect(await found("key=office", anna)).toBe("");
  expect(await found("key=does-not-exist", anna)).toBe("");
  for (const path of ["/spend/calls/d", "/spend/calls/d/prompt"]) {
    const { status } = await fixture.rejected("GET", path, undefined, anna);
    expect(status).toBe(403);
  }
  expect(await fixture.rejected("GET", "/spend/calls/none")).toMatchObject({
    status: 404,
    error: { message: expect.stringContaining('No call "none" is in the') },
  });
  expect(await fixture.get("/spend/calls/d", bob)).toMatchObject({
    request_id: "d",
    team_alias: "Home",
  });
});

async function callOf(answer: { readonly headers: Headers }): Promise<Json> {
  await fixture.running.gateway.ledger.flush();
  await fixture.running.gateway.prompts.flush();
  const id = answer.headers.get("x-hearth-call-id");
  return fixture.get(`/spend/calls/${id}`);
}

test("the path of a call names its failed attempts and its fallback", async () => {
  const call = await callOf(
    await fixture.chat(anna, "hello", { model: "shaky" }),
  );
  expect(call["path"]).toMatchObject([
    {
      kind: "attempt",
      as: "first",
      status: 500,
      deployment: { model_group: "shaky", provider: "openai" },
      ms: expect.any(Number),
    },
    { kind: "attempt", as: "retry", status: 500 },
    { kind: "answer", as: "fallback", deployment: { model_group: "mock" } },
  ]);
  expect(call["times"]).toMatchObject({
    waited_ms: expect.any(Number),
    overhead_ms: expect.any(Number),
    tokens_per_second: expect.any(Number),
  });
});

test("the lines of the cost add up to the ledger's, to the last digit", async () => {
  const usage = {
    prompt_tokens: 1_234,
    completion_tokens: 567,
    prompt_tokens_details: { cached_tokens: 1_000 },
    completion_tokens_details: { reasoning_tokens: 89 },
  };
  const answer = await fixture.chat(
    anna,
    `[mock]${JSON.stringify({ usage })}`,
    { model: "mock-prompted" },
  );
  const call = await callOf(answer);
  const { lines, total, rounding } = call["cost"] as unknown as {
    lines: { part: string; amount: string; used: number; price: string }[];
    total: string;
    rounding: string;
  };
  expect(lines.map(({ part, used, price }) => [part, used, price])).toEqual([
    ["input_tokens", 234, "0.15"],
    ["cached_input_tokens", 1_000, "0.075"],
    ["output_tokens", 478, "0.6"],
    ["reasoning_tokens", 89, "1.2"],
    ["request", 1, "0.0021"],
  ]);
  const nanos = (text: string) => BigInt(Math.round(Number(text) * 1e10));
  expect(lines.reduce((sum, { amount }) => sum + nanos(amount), 0n)).toBe(
    nanos(total),
  );
  expect(rounding).toBe("0");
  expect(total).toBe("0.0026037");
});

test("prompts of a key are stored where it says so, without keys; each view is audited", async () => {
  const secret = "sk-proj-" + "Ab3".repeat(16);
  const key = await fixture.createKey({ store_prompts: true, user_id: "carl" });
  const ask = (named: string) =>
    fixture.request(
      "POST",
      "/v1/chat/completions",
      {
        model: "mock",
        messages: [{ role: "user", content: `my key is ${secret}` }],
      },
      named,
      { "user-agent": "test/1", "x-api-key-of-mine": "hidden", cookie: "c=1" },
    );
  const stored = await callOf(await ask(key));
  const other = await callOf(await ask(anna));
  expect([stored["prompt_is_stored"], other["prompt_is_stored"]]).toEqual([
    true,
    false,
  ]);
  const path = `/spend/calls/${String(stored["request_id"])}/prompt`;
  const views = () => fixture.get("/audit?object_type=prompt");
  expect(await views()).toEqual([]);
  expect(await fixture.get(path, key)).toEqual({
    request_id: stored["request_id"],
    headers: expect.objectContaining({ "user-agent": "test/1" }),
    messages: [{ role: "user", content: "my key is [REDACTED]" }],
    response: expect.objectContaining({ choices: expect.any(Array) }),
  });
  const text = JSON.stringify(
    await query(fixture.pool, "SELECT * FROM prompts"),
  );
  expect(text).not.toMatch(/hidden|c=1|Ab3/);
  const viewed = { action: "viewed", object_id: stored["request_id"] };
  expect(await views()).toMatchObject([{ ...viewed, actor: "carl" }]);
  await fixture.get(`/spend/logs?request_id=${String(stored["request_id"])}`);
  expect(await views()).toMatchObject([viewed, viewed]);
  const { status } = await fixture.rejected("GET", path, undefined, anna);
  expect(status).toBe(403);
  const none = `/spend/calls/${String(other["request_id"])}/prompt`;
  expect((await fixture.rejected("GET", none)).error).toMatchObject({
    message: expect.stringContaining("store_prompts"),
  });
});

test("an address that is hidden in an error cannot be found out by a search", async () => {
  const hers = { api_key: hashKey(anna), user_id: "anna" };
  const failed = (second: number, message: string) => ({
    ...hers,
    ...at(second),
    request_id: crypto.randomUUID(),
    status: "failure" as const,
    spend: 0,
    metadata: {
      error_information: { error_code: "502", error_message: message },
    },
  });
  await fixture.spend(
    failed(40, "dial 10.0.0.5:8000: refused"),
    failed(41, "dial 10.0.0.5:8000: refused"),
    failed(42, "refused by a filter"),
  );
  const search = (error: string, key?: string) =>
    fixture.get(
      `/spend/calls?${DAY}&page_size=1&error=${encodeURIComponent(error)}`,
      key,
    );
  const nothing = await search("nothing has this", anna);
  expect(await search("10.0.0", anna)).toEqual(nothing);
  expect((await search("10.0.0"))["data"]).toHaveLength(1);
  const shown = await search("REFUSED", anna);
  expect(shown["data"]).toHaveLength(1);
  expect(shown["older"]).not.toBeNull();
  expect(
    await fixture.rejected(
      "GET",
      `/spend/logs/v2?${DAY}&error_message=10.0.0`,
      undefined,
      anna,
    ),
  ).toMatchObject({ status: 403, error: { param: "error_message" } });
});
