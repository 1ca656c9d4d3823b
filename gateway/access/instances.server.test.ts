import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  INPUT_PRICE,
  modelYaml,
  OUTPUT_PRICE,
  startTestGateway,
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
import { SocketClient } from "../responses/socket/client-fixture.ts";

const FAILING = `
  - model_name: failing
    provider_params: { model: openai/f, api_base: "http://127.0.0.1:9/v1", api_key: x }
  - model_name: failing
    provider_params: { model: openai/g, api_base: "http://127.0.0.1:9/v1", api_key: x }
`;

/** As stated in accounting.md §3: an admin's change takes effect on every instance within a second. */
const WITHIN = { timeout: 1_000, interval: 50 };

describe.runIf(hasRedisServer())(
  "two instances on one database and Redis",
  () => {
    let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
    let redis: TestRedis;
    let provider: MockProvider;
    let one: TestGateway;
    let other: TestGateway;

    beforeAll(async () => {
      database = await throwAwayDatabase();
      redis = await startRedis();
      provider = await startMockProvider();
      const start = () =>
        startTestGateway({
          databaseUrl: database.url,
          providerUrl: provider.url,
          yaml: `${modelYaml(provider.url, FAILING)}proxy_settings: { cache: true, cache_params: { type: redis } }\n`,
          env: { REDIS_HOST: "127.0.0.1", REDIS_PORT: String(redis.port) },
        });
      one = await start();
      other = await start();
    });

    afterAll(async () => {
      await one?.stop();
      await other?.stop();
      await provider?.close();
      await redis?.remove();
      await database?.drop();
    });

    let prompts = 0;
    const statusAt = async (gateway: TestGateway, key: string) =>
      (await gateway.chat(key, `prompt ${++prompts}`)).status;

    test("a key created on one instance works on the other, and its spend counts on both", async () => {
      const twoCalls = 2 * (10 * INPUT_PRICE + 4 * OUTPUT_PRICE);
      const key = await one.createKey({ max_budget: twoCalls });
      expect(await statusAt(one, key)).toBe(200);
      expect(await statusAt(other, key)).toBe(200);
      expect(await statusAt(one, key)).toBe(400);
      expect(await statusAt(other, key)).toBe(400);
    });

    test("a blocked key, a raised budget and an adjusted spend reach the other instance within a second", async () => {
      const key = await one.createKey({ max_budget: 0.00001 });
      await other.chat(key, "one");
      expect(await statusAt(other, key)).toBe(400);
      await one.request("POST", "/key/update", { key, max_budget: 1 });
      await expect.poll(() => statusAt(other, key), WITHIN).toBe(200);
      await one.request("POST", "/key/update", { key, spend: 2 });
      await expect.poll(() => statusAt(other, key), WITHIN).toBe(400);
      await one.request("POST", "/key/update", { key, spend: 0 });
      await expect.poll(() => statusAt(other, key), WITHIN).toBe(200);
      await one.request("POST", "/key/block", { key });
      await expect.poll(() => statusAt(other, key), WITHIN).toBe(401);
    });

    test("a replaced and a deleted key stop working at once where that was done, and within a second on the other instance", async () => {
      const key = await one.createKey({});
      expect(await statusAt(other, key)).toBe(200);
      expect(await statusAt(one, key)).toBe(200);
      const rotated = await one.request("POST", "/key/regenerate", { key });
      expect(await statusAt(one, key)).toBe(401);
      const renewed = String(rotated.json["key"]);
      expect(await statusAt(other, renewed)).toBe(200);
      await expect.poll(() => statusAt(other, key), WITHIN).toBe(401);
      await one.request("POST", "/key/delete", { keys: [renewed] });
      expect(await statusAt(one, renewed)).toBe(401);
      await expect.poll(() => statusAt(other, renewed), WITHIN).toBe(401);
    });

    test("a blocked key ends no stream in progress and no WebSocket, whose next turn is denied", async () => {
      const key = await one.createKey({});
      const socket = await SocketClient.connect(other.url, key);
      const streaming = other.chat(
        key,
        '[mock]{"chunks":50,"chunkDelayMs":100}',
        { stream: true },
      );
      const { activeCalls } = other.running.gateway;
      await expect.poll(() => activeCalls.count()).toBe(1);
      await one.request("POST", "/key/block", { key });
      await expect.poll(() => statusAt(other, key), WITHIN).toBe(401);
      expect(activeCalls.count()).toBe(1);
      expect(await socket.create({ model: "mock", input: "Hello" })).toEqual([
        expect.objectContaining({ type: "error", status: 401 }),
      ]);
      expect(socket.isOpen).toBe(true);
      expect((await streaming).text).toContain("[DONE]");
      socket.close();
    });

    test("keys of a deleted user stop working on the other instance within a second", async () => {
      const key = await one.createKey({ user_id: "leaver" });
      expect(await statusAt(other, key)).toBe(200);
      await one.request("POST", "/user/delete", { user_ids: ["leaver"] });
      await expect.poll(() => statusAt(other, key), WITHIN).toBe(401);
    });

    test("an answer cached by one instance is a hit on the other", async () => {
      const key = await one.createKey({});
      await one.chat(key, "shared question");
      const again = await other.chat(key, "shared question");
      expect(again.headers.get("x-hearth-cache")).toBe("hit");
    });

    test("such an answer needs no budget, even while a call holds all of it", async () => {
      const key = await one.createKey({ max_budget: 0.0001 });
      await one.chat(key, "asked before");
      const holding = one.chat(key, '[mock]{"delayMs":1500}', {
        max_tokens: 10_000,
      });
      await expect
        .poll(() => one.running.gateway.activeCalls.count())
        .toBeGreaterThan(0);
      const again = await other.chat(key, "asked before");
      expect(again.headers.get("x-hearth-cache")).toBe("hit");
      expect(one.running.gateway.activeCalls.count()).toBe(1);
      expect((await holding).status).toBe(200);
    });

    test("adding, changing, switching off and deleting a model reaches the other instance within a second", async () => {
      const key = await one.createKey({});
      const ask = async () =>
        (await other.chat(key, `p ${++prompts}`, { model: "added" })).status;
      expect(await ask()).toBe(400);
      const made = await one.request("POST", "/model/new", {
        model_name: "added",
        provider_params: {
          model: "openai/added",
          api_base: provider.url,
          api_key: "x",
        },
      });
      await expect.poll(ask, WITHIN).toBe(200);
      const id = made.json["model_info"]?.["id"];
      await one.request("POST", "/model/update", {
        model_info: { id },
        provider_params: { model: "openai/renamed" },
      });
      await expect
        .poll(async () => {
          await ask();
          return provider.requests.at(-1)?.body["model"];
        }, WITHIN)
        .toBe("renamed");
      await one.request("POST", "/model/block", { model_id: id });
      await expect.poll(ask, WITHIN).toBe(403);
      await one.request("POST", "/model/unblock", { model_id: id });
      await expect.poll(ask, WITHIN).toBe(200);
      await one.request("POST", "/model/delete", { id });
      await expect.poll(ask, WITHIN).toBe(400);
    });

    test("a cooldown on one instance applies to the other within a second", async () => {
      const key = await one.createKey({});
      const ask = async (gateway: TestGateway) =>
        (
          await gateway.chat(key, `p ${++prompts}`, {
            model: "failing",
            num_retries: 0,
          })
        ).status;
      // Five of each, the least calls of a minute that count.
      for (let failures = 0; failures < 10; failures++) {
        expect(await ask(one)).toBe(502);
      }
      expect(await ask(one)).toBe(429);
      await expect.poll(() => ask(other), WITHIN).toBe(429);
    });

    test("roles that may read everything get Redis' server info", async () => {
      const info = await one.request("GET", "/cache/redis/info");
      expect(info.json["info"]?.["redis_version"]).toMatch(/^\d/);
      expect(Number(info.json["num_clients"])).toBeGreaterThanOrEqual(2);
      const key = await one.createKey({});
      expect(
        (await one.request("GET", "/cache/redis/info", undefined, key)).status,
      ).toBe(403);
    });

    test("all sums agree across both instances", async () => {
      await one.running.gateway.ledger.flush();
      await other.running.gateway.ledger.flush();
      expect(
        await query(one.running.gateway.pool, "SELECT * FROM spend_check"),
      ).toEqual([]);
    });
  },
);
