import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  INPUT_PRICE,
  modelYaml,
  startTestGateway,
  type TestAnswer,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import {
  startMockProvider,
  type MockProvider,
} from "../../test/servers/provider.ts";
import {
  hasRedisServer,
  startRedis,
  type TestRedis,
} from "../../test/servers/redis.ts";
import { query } from "../database/pool.ts";

const stores = hasRedisServer() ? ["memory", "redis"] : ["memory"];

describe.each(stores)("embeddings with a cache in %s", (store) => {
  let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
  let redis: TestRedis | null = null;
  let provider: MockProvider;
  let gateway: TestGateway;

  beforeAll(async () => {
    database = await throwAwayDatabase();
    provider = await startMockProvider();
    if (store === "redis") {
      redis = await startRedis();
    }
    const more = `
  - model_name: falls
    provider_params: { model: openai/falls, api_base: "http://127.0.0.1:9/v1", api_key: x, max_retries: 0, input_cost_per_token: 0.000001 }
  - model_name: late
    provider_params: { model: openai/late, api_base: "${provider.url}", api_key: x, max_retries: 0, timeout: 2, input_cost_per_token: 0 }
  - model_name: late-too
    provider_params: { model: openai/late, api_base: "${provider.url}", api_key: x, max_retries: 0, timeout: 2, input_cost_per_token: 1 }
proxy_settings: { cache: true, fallbacks: [{ falls: [mock] }, { late: [late-too] }] }
`;
    gateway = await startTestGateway({
      databaseUrl: database.url,
      providerUrl: provider.url,
      yaml: modelYaml(provider.url, more),
      ...(redis === null
        ? {}
        : {
            env: { REDIS_HOST: "127.0.0.1", REDIS_PORT: String(redis.port) },
          }),
    });
  });

  afterAll(async () => {
    await gateway?.stop();
    await provider?.close();
    await redis?.remove();
    await database?.drop();
  });

  const embed = (
    key: string,
    input: unknown,
    fields: Readonly<Record<string, unknown>> = {},
  ) =>
    gateway.request(
      "POST",
      "/v1/embeddings",
      { model: "mock", input, ...fields },
      key,
    );
  const firsts = (answer: TestAnswer) =>
    (
      answer.json["data"] as unknown as {
        index: number;
        embedding: number[];
      }[]
    ).map(({ index, embedding }) => [index, embedding[0]]);
  const lastInput = () => provider.requests.at(-1)?.body["input"];
  const cacheOf = (answer: TestAnswer) => answer.headers.get("x-hearth-cache");

  test("a stream, which embeddings do not have, is not asked for", async () => {
    const key = await gateway.createKey({});
    const first = await embed(key, "streamed", { stream: true });
    expect(firsts(first)).toEqual([[0, 8]]);
    expect(provider.requests.at(-1)?.body).not.toHaveProperty("stream");
    expect(cacheOf(await embed(key, "streamed"))).toBe("hit");
  });

  test("only uncached items are requested from the provider", async () => {
    const key = await gateway.createKey({ user_id: `items-${store}` });
    const first = await embed(key, ["a", "bb"]);
    expect(firsts(first)).toEqual([
      [0, 1],
      [1, 2],
    ]);
    const part = await embed(key, ["ccc", "a", "dddd", "bb", "ccc"]);
    expect(lastInput()).toEqual(["ccc", "dddd"]);
    expect(firsts(part)).toEqual([
      [0, 3],
      [1, 1],
      [2, 4],
      [3, 2],
      [4, 3],
    ]);
    expect(cacheOf(part)).toBe("miss");
    expect(Number(part.headers.get("x-hearth-cost"))).toBeCloseTo(
      10 * INPUT_PRICE,
      12,
    );
    const requestsBefore = provider.requests.length;
    const all = await embed(key, ["dddd", "a"]);
    const single = await embed(key, "ccc");
    const inList = await embed(key, ["bb"]);
    expect([all, single, inList].map(cacheOf)).toEqual(["hit", "hit", "hit"]);
    expect(firsts(all)).toEqual([
      [0, 4],
      [1, 1],
    ]);
    expect(firsts(single)).toEqual([[0, 3]]);
    expect(provider.requests.length).toBe(requestsBefore);
    expect(all.headers.get("x-hearth-cost")).toBe("0");
    expect(all.json["model"]).toBe("mock-model");

    await gateway.running.gateway.ledger.flush();
    const rows = await query<Record<string, unknown>>(
      gateway.running.gateway.pool,
      `SELECT cache_hit, spend::float8, metadata FROM spend_log WHERE user_id = $1 ORDER BY started_at`,
      [`items-${store}`],
    );
    expect(rows.map((row) => row["cache_hit"])).toEqual([
      false,
      false,
      true,
      true,
      true,
    ]);
    expect(rows[1]?.["metadata"]).toMatchObject({ cached_items: 2 });
    expect(rows[2]?.["spend"]).toBe(0);
  });

  test("token lists are items too; other dimensions are separate entries; no-cache calls the provider", async () => {
    const key = await gateway.createKey({});
    await embed(key, [
      [1, 2],
      [3, 4],
    ]);
    expect(cacheOf(await embed(key, [3, 4]))).toBe("hit");
    expect(cacheOf(await embed(key, [[3, 4]], { dimensions: 2 }))).toBe("miss");
    const again = await embed(key, [3, 4], { cache: { "no-cache": true } });
    expect(cacheOf(again)).toBe("miss");
    const other = await gateway.createKey({ user_id: "stranger" });
    expect(cacheOf(await embed(other, [3, 4]))).toBe("miss");
  });

  test("a fallback gets all items, and its vectors are not cached for the alias", async () => {
    const key = await gateway.createKey({});
    const answer = await embed(key, ["x", "yy"], { model: "falls" });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-hearth-attempted-fallbacks")).toBe("1");
    const again = await embed(key, ["x"], { model: "falls" });
    expect(cacheOf(again)).toBe("miss");
  });

  test("a fallback that may charge for all items is billed for all of them", async () => {
    const key = await gateway.createKey({ user_id: `late-${store}` });
    const long = "word ".repeat(100);
    expect((await embed(key, [long, "y"], { model: "late" })).status).toBe(200);
    const late = `[mock]${JSON.stringify({ delayMs: 20_000 })}`;
    const answer = await embed(key, [long, late], { model: "late" });
    expect(answer.status).toBe(408);
    await gateway.running.gateway.ledger.flush();
    const [row] = await query<{ spend: number }>(
      gateway.running.gateway.pool,
      "SELECT spend::float8 FROM spend_log WHERE request_id = $1",
      [answer.headers.get("x-hearth-call-id")],
    );
    expect(row?.spend).toBeGreaterThan(100);
  });

  test("a hit is admitted while other calls have reserved the rest of the budget, and an overspent key is rejected", async () => {
    const key = await gateway.createKey({ max_budget: 15 * INPUT_PRICE });
    await embed(key, ["p", "q"]);
    expect(cacheOf(await embed(key, ["q", "p"]))).toBe("hit");
    await embed(key, ["r", "s"]);
    const refused = await embed(key, ["q", "p"]);
    expect(refused.json["error"]?.["type"]).toBe("budget_exceeded");
  });

  test("all sums agree", async () => {
    await gateway.running.gateway.ledger.flush();
    expect(
      await query(gateway.running.gateway.pool, "SELECT * FROM spend_check"),
    ).toEqual([]);
  });
});
