import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { probeRedis } from "../../cli/doctor/probe-programs.ts";
import {
  forgetLimits,
  redisPlace,
} from "../../supervisor/backup/forget-limits.ts";
import { throwAwayDatabase } from "../servers/database.ts";
import { modelYaml, startTestGateway } from "../servers/gateway.ts";
import { startMockProvider } from "../servers/provider.ts";
import { hasRedisServer } from "../servers/redis.ts";
import { startSentinels, type TestSentinels } from "../servers/sentinel.ts";
import { probeCheck } from "../supervisor/probe-check.ts";
import { openTestbed } from "./testbed.ts";

const PASSWORD = "p:ss@w/rd";
const SENTINEL_PASSWORD = "s3ntinel";

describe.runIf(hasRedisServer())("Redis under sentinels, with logins", () => {
  let sentinels: TestSentinels;
  let variables: Readonly<Record<string, string>>;

  beforeAll(async () => {
    sentinels = await startSentinels({
      password: PASSWORD,
      sentinelPassword: SENTINEL_PASSWORD,
    });
    variables = {
      REDIS_SENTINELS: sentinels.ports
        .map((port) => `127.0.0.1:${port}`)
        .join(","),
      REDIS_MASTER_NAME: sentinels.masterName,
      REDIS_USERNAME: "gateway",
      REDIS_PASSWORD: PASSWORD,
      REDIS_SENTINEL_PASSWORD: SENTINEL_PASSWORD,
    };
  }, 60_000);
  afterAll(() => sentinels?.remove());

  const check = (more: Readonly<Record<string, string>> = {}) =>
    probeCheck({
      kind: "redis",
      sentinels: variables["REDIS_SENTINELS"],
      master_name: sentinels.masterName,
      user: "gateway",
      password: PASSWORD,
      sentinel_password: SENTINEL_PASSWORD,
      ...more,
    });

  test("mistakes name the setting to change", async () => {
    expect(await check()).toMatchObject({ ok: true });
    expect((await check({ master_name: "other" })).text).toBe(
      'The sentinels do not know "other": set REDIS_MASTER_NAME to the name that follows "sentinel monitor" in their configuration.',
    );
    expect((await check({ user: "other" })).text).toMatch(
      /^Redis rejects the login: set REDIS_PASSWORD, and REDIS_USERNAME/,
    );
    const wrong = await check({ sentinel_password: "wr0ng" });
    expect(wrong.text).toMatch(/^The sentinels reject the login/);
    expect(wrong.text).not.toContain("wr0ng");
    expect(await probeRedis(variables)).toMatchObject([
      { level: "fine", text: expect.stringContaining('"limits" of the') },
    ]);
    expect(
      await probeRedis({ ...variables, REDIS_MASTER_NAME: "other" }),
    ).toMatchObject([
      { level: "wrong", fix: expect.stringMatching(/REDIS_MASTER_NAME/) },
    ]);
    const testbed = await openTestbed(inject("postgresUrl"), {
      gateways: 1,
      redis: false,
      env: { ...variables, REDIS_MASTER_NAME: "other" },
    });
    try {
      await expect
        .poll(() => testbed.gateways[0]?.output(), { timeout: 20_000 })
        .toContain('The sentinels do not know \\"other\\"');
    } finally {
      await testbed.close();
    }
  });

  test("a gateway follows the primary with limits and cache, and no call fails", async () => {
    const database = await throwAwayDatabase();
    const provider = await startMockProvider();
    const gateway = await startTestGateway({
      databaseUrl: database.url,
      providerUrl: provider.url,
      yaml: `${modelYaml(provider.url)}
proxy_settings: { cache: true }
`,
      env: variables,
    });
    try {
      const mode = () => gateway.running.gateway.limits.mode();
      const key = await gateway.createKey({ max_budget: 1 });
      const ask = async (prompt: string) => {
        const { status, headers } = await gateway.chat(key, prompt);
        expect(status).toBe(200);
        return headers.get("x-hearth-cache");
      };
      await ask("before");
      await expect.poll(mode).toBe("redis");
      await expect.poll(() => ask("before")).toBe("hit");
      let isOver = false;
      const failover = sentinels.failOver().finally(() => (isOver = true));
      for (let call = 0; !isOver; call++) {
        await ask(`during ${call}`);
      }
      await failover;
      await expect.poll(mode, { timeout: 20_000 }).toBe("redis");
      await ask("after");
      await expect.poll(() => ask("after"), { timeout: 20_000 }).toBe("hit");
      const place = redisPlace(variables);
      expect(await sentinels.client.keys("hearth:limits:*")).not.toEqual([]);
      expect(place && (await forgetLimits(place))).toBeUndefined();
      expect(await check()).toMatchObject({ ok: true });
      await ask("forgotten");
      await expect
        .poll(async () => (await gateway.request("GET", "/spend/check")).json)
        .toMatchObject({ status: "equal" });
    } finally {
      await gateway.stop();
      await provider.close();
      await database.drop();
    }
  }, 120_000);
});
