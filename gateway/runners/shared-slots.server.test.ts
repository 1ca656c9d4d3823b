import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  MASTER_KEY,
  startTestGateway,
  type TestGateway,
} from "../../test/servers/gateway.ts";
import {
  hasRedisServer,
  redisAt,
  startRedis,
  type TestRedis,
} from "../../test/servers/redis.ts";
import { RunnerDouble } from "../../test/servers/runner.ts";
import { connectRedis } from "../cache/redis.ts";
import { RedisSlotLeases } from "./slot-leases.ts";

describe.runIf(hasRedisServer())("with another gateway's leases", () => {
  const runners = [
    new RunnerDouble("vllm", ["m"]),
    new RunnerDouble("vllm", ["m"]),
  ] as const;
  const [preferred, second] = runners;
  let redis: TestRedis;
  let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
  let gateway: TestGateway;

  beforeAll(async () => {
    await Promise.all(runners.map((runner) => runner.start()));
    redis = await startRedis();
    database = await throwAwayDatabase();
    const deployment = ({ url }: RunnerDouble, price: number) =>
      `  - { model_name: m, provider_params: { model: openai/m, api_base: "${url}", local: true, slots: 1, input_cost_per_token: ${price} } }\n`;
    gateway = await startTestGateway({
      databaseUrl: database.url,
      providerUrl: preferred.url,
      yaml: `model_list:
${deployment(preferred, 0.000_001)}${deployment(second, 0.000_002)}
router_settings: { routing_strategy: cost-based-routing }
`,
      env: { REDIS_HOST: "127.0.0.1", REDIS_PORT: String(redis.port) },
    });
  });

  afterAll(async () => {
    await gateway?.stop();
    await database?.drop();
    await redis?.remove();
    await Promise.all(runners.map((runner) => runner.stop()));
  });

  test("a call passes over a runner whose slots another gateway holds, and waits where all are held", async () => {
    const client = connectRedis(redisAt(redis.port), () => undefined);
    await expect.poll(() => client.status).toBe("ready");
    const other = new RedisSlotLeases(client);
    const hold = ({ url }: RunnerDouble) => other.take(`${url}\0m`, 1);
    const ask = () =>
      gateway.chat(MASTER_KEY, "hi", { model: "m", timeout: 20 });
    const held = await hold(preferred);
    expect((await ask()).status).toBe(200);
    expect([preferred, second].map((one) => one.requests.length)).toEqual([
      0, 1,
    ]);
    const both = await hold(second);
    const waiting = ask();
    await expect
      .poll(async () => {
        const { text } = await gateway.request("GET", "/metrics");
        return /^hearth_queued_calls\{.*\} 1$/m.test(text);
      })
      .toBe(true);
    held?.release();
    both?.release();
    expect((await waiting).status).toBe(200);
    other.stop();
    client.disconnect();
  });
});
