import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, test } from "vitest";
import { throwAwayDatabase } from "../../test/servers/database.ts";
import {
  modelYaml,
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

let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let provider: MockProvider;
let redis: TestRedis;
let gateway: TestGateway;

beforeAll(async () => {
  if (!hasRedisServer()) {
    return;
  }
  database = await throwAwayDatabase();
  provider = await startMockProvider();
  redis = await startRedis();
  gateway = await startTestGateway({
    databaseUrl: database.url,
    providerUrl: provider.url,
    yaml: `${modelYaml(provider.url)}
proxy_settings: { cache: true }
`,
    env: { REDIS_HOST: "127.0.0.1", REDIS_PORT: String(redis.port) },
  });
});

afterAll(async () => {
  await gateway?.stop();
  await redis?.remove();
  await provider?.close();
  await database?.drop();
});

test.skipIf(!hasRedisServer())(
  "cached answers and limits use separate connections, so that a large answer does not delay the limits",
  async () => {
    const ofCache = new Set<string>();
    const ofLimits = new Set<string>();
    const monitor = await watchCommands(redis.port, (source, command) => {
      if (command.includes('"proxy.cache')) {
        ofCache.add(source);
      }
      if (/^"evalsha"/i.test(command)) {
        ofLimits.add(source);
      }
    });
    try {
      const key = await gateway.createKey({ max_budget: 1 });
      const ask = async (prompt: string) =>
        (await gateway.chat(key, prompt)).headers.get("x-hearth-cache");
      expect(await ask("once")).toBe("miss");
      await expect.poll(() => ask("once")).toBe("hit");
      expect(ofCache.size).toBe(1);
      expect(ofLimits.size).toBe(1);
      expect([...ofCache]).not.toEqual([...ofLimits]);
    } finally {
      monitor.destroy();
    }
  },
);

test.skipIf(!hasRedisServer()).each([64.1, 1e300])(
  "an answer is cached for a ttl of %d s",
  async (ttl) => {
    const key = await gateway.createKey({});
    const ask = async () =>
      (await gateway.chat(key, `for ${ttl} s`, { cache: { ttl } })).headers.get(
        "x-hearth-cache",
      );
    expect(await ask()).toBe("miss");
    await expect.poll(ask).toBe("hit");
  },
);

test.skipIf(!hasRedisServer())(
  "calls are uncached while Redis does not answer, and cached again afterwards",
  async () => {
    const key = await gateway.createKey({});
    const ask = async (prompt: string) => {
      const { status, headers } = await gateway.chat(key, prompt);
      expect(status).toBe(200);
      return headers.get("x-hearth-cache");
    };
    await ask("kept");
    await expect.poll(() => ask("kept")).toBe("hit");
    redis.freeze();
    try {
      expect(await ask("kept")).toBe("miss");
      await expect
        .poll(() => gateway.running.gateway.limits.mode(), { timeout: 10_000 })
        .toBe("redis_away");
      expect(await ask("kept")).toBe("miss");
    } finally {
      redis.thaw();
    }
    await expect.poll(() => ask("kept"), { timeout: 20_000 }).toBe("hit");
  },
  60_000,
);

/** Observes every command that a connection sends, except those of scripts. ioredis loses count of replies that arrive together. */
async function watchCommands(
  port: number,
  onCommand: (source: string, command: string) => void,
): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  const lines = createInterface({ input: socket });
  socket.write("MONITOR\r\n");
  await once(lines, "line");
  lines.on("line", (line) => {
    const [, source, command] = /\[\d+ (\S+)\] (.*)/.exec(line) ?? [];
    if (source === undefined || command === undefined || source === "lua") {
      return;
    }
    onCommand(source, command);
  });
  return socket;
}
