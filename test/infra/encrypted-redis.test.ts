import { spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectRedis } from "../../gateway/cache/redis.ts";
import { openAuthority } from "../../infra/certificates.ts";
import {
  forgetLimits,
  redisPlace,
} from "../../supervisor/backup/forget-limits.ts";
import { probeRedis } from "../../cli/doctor/probe-programs.ts";
import { probeCheck } from "../supervisor/probe-check.ts";
import { freePort } from "../servers/ports.ts";
import {
  hasRedisServer,
  redisAt,
  startRedis,
  type TestRedis,
} from "../servers/redis.ts";

/** Each client of Redis, with a certificate of the stack's authority and with one of another. */
describe.runIf(hasRedisServer())("a Redis that speaks TLS", () => {
  let redis: TestRedis;
  let directory: string;
  let port: number;
  let own: string;
  let foreign: string;

  beforeAll(async () => {
    redis = await startRedis();
    directory = mkdtempSync(join(tmpdir(), "hearth-tls-"));
    port = await freePort();
    const { authority, issue } = await openAuthority(newKey());
    const { certificate, key } = await issue("redis", ["127.0.0.1"]);
    const write = (name: string, text: string): string => {
      writeFileSync(join(directory, name), text);
      return join(directory, name);
    };
    await redis.client.config(
      "SET",
      "tls-cert-file",
      write("crt", certificate),
      "tls-key-file",
      write("key", key),
      "tls-ca-cert-file",
      write("ca", authority),
      "tls-auth-clients",
      "no",
      "tls-port",
      String(port),
    );
    own = authority;
    foreign = (await openAuthority(newKey())).authority;
  });
  afterAll(async () => {
    await redis.remove();
    rmSync(directory, { recursive: true });
  });

  const environment = (ca: string) => ({
    REDIS_URL: `rediss://127.0.0.1:${port}`,
    REDIS_CA: ca,
  });

  test("the gateway's client", async () => {
    const connected = async (ca: string): Promise<unknown> => {
      let settle: (seen: unknown) => void = () => undefined;
      const seen = new Promise((resolve) => (settle = resolve));
      const client = connectRedis(redisAt(port, { tls: true, ca }), settle);
      client.once("ready", () => settle("ready"));
      try {
        return await seen;
      } finally {
        client.disconnect();
      }
    };
    expect(await connected(own)).toBe("ready");
    expect(String(await connected(foreign))).toMatch(/certificate/);
  });

  test("the gateway's client through a sentinel that speaks TLS too", async () => {
    const sentinelPort = await freePort();
    const file = join(directory, "sentinel.conf");
    writeFileSync(
      file,
      `port 0
tls-port ${sentinelPort}
tls-cert-file ${join(directory, "crt")}
tls-key-file ${join(directory, "key")}
tls-ca-cert-file ${join(directory, "ca")}
tls-auth-clients no
tls-replication yes
dir ${directory}
sentinel monitor limits 127.0.0.1 ${port} 1
`,
    );
    const sentinel = spawn("redis-server", [file, "--sentinel"], {
      stdio: "ignore",
    });
    const place = redisAt(sentinelPort, {
      sentinel: { masterName: "limits", username: null, password: null },
      tls: true,
    });
    const clients = [own, foreign].map((ca) =>
      connectRedis({ ...place, ca }, () => undefined),
    );
    try {
      await expect
        .poll(() => clients[0]?.status, { timeout: 20_000 })
        .toBe("ready");
      expect(clients[1]?.status).not.toBe("ready");
    } finally {
      for (const client of clients) {
        client.disconnect();
      }
      sentinel.kill("SIGKILL");
      await once(sentinel, "exit");
    }
  });

  test("the supervisor's check", async () => {
    const look = (ca: string) =>
      probeCheck({ kind: "redis", url: `redis://127.0.0.1:${port}`, ca });
    expect(await look(own)).toMatchObject({ ok: true });
    expect(await look(foreign)).toMatchObject({
      ok: false,
      text: expect.stringMatching(/certificate/) as string,
    });
  });

  test("the command that resets limits, and the doctor", async () => {
    const forget = async (ca: string): Promise<void> => {
      const place = redisPlace(environment(ca));
      if (place === undefined) {
        throw new Error("no Redis is named");
      }
      await forgetLimits(place);
    };
    await redis.client.set("hearth:limits:one", "1");
    await expect(forget(foreign)).rejects.toThrow();
    await forget(own);
    expect(await redis.client.exists("hearth:limits:one")).toBe(0);
    expect(await probeRedis(environment(own))).toMatchObject([
      { level: "fine" },
    ]);
    expect(await probeRedis(environment(foreign))).toMatchObject([
      { level: "wrong" },
    ]);
  });
});

function newKey(): string {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return String(privateKey.export({ type: "pkcs8", format: "pem" }));
}
