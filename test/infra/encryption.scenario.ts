import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { connect, type PeerCertificate } from "node:tls";
import { Redis } from "ioredis";
import pg from "pg";
import { afterEach, describe, expect, test, vi } from "vitest";
import { DAY_MS } from "../../core/duration.ts";
import { openAuthority } from "../../infra/certificates.ts";
import { askPostgres } from "../../infra/postgres-socket.ts";
import { PARALLEL } from "../../infra/deploy/deploy-stack.ts";
import { callSteadily, expectNoFailedCall, MAX_WAIT_MS } from "./callers.ts";
import { allHealthy, changedSince, containerIds } from "./containers.ts";
import { quiet, say, sessionOf, settingOf, timed } from "./day-two.ts";
import { chat, deployedStack, EDGES } from "./running.ts";
import { askTls } from "./supervisors.ts";
import { addresses } from "./two-engines.ts";

const running = deployedStack();
const YEAR_MS = 365 * DAY_MS;
afterEach(() => vi.restoreAllMocks());

/** Traffic between the hosts: what each side rejects, and how certificates are renewed. */
describe("encryption", () => {
  async function authorities(): Promise<{
    readonly own: string;
    readonly foreign: string;
  }> {
    const caKey = await settingOf(running().testbed, "caKey");
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const other = String(privateKey.export({ type: "pkcs8", format: "pem" }));
    return {
      own: (await openAuthority(caKey)).authority,
      foreign: (await openAuthority(other)).authority,
    };
  }

  test("Postgres rejects plain text, and clients of another authority reject Postgres", async () => {
    const { testbed } = running();
    const { own, foreign } = await authorities();
    const password = await settingOf(testbed, "supervisorPassword");
    const login = async (ssl: pg.ClientConfig["ssl"]): Promise<void> => {
      const client = new pg.Client({
        host: addresses.a,
        user: "supervisor",
        database: "hearth",
        password,
        ssl,
      });
      client.on("error", () => undefined);
      await client.connect();
      await client.end();
    };
    await login({ ca: own });
    await expect(login(false)).rejects.toThrow(/no encryption/);
    await expect(login({ ca: foreign })).rejects.toThrow(/certificate/);
    const { engines } = await sessionOf(testbed);
    expect(
      await askPostgres(
        engines.a,
        `SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
         WHERE client_addr IS NOT NULL AND state <> 'starting';`,
      ),
    ).toBe("t");
  });

  test("the documented command restores Postgres, over TLS", async () => {
    const { testbed, key } = running();
    const on = "hearth-supervisor";
    await testbed.docker("a", "exec", on, "hearth", "backup", "run");
    const password = await settingOf(testbed, "postgresPassword");
    const address = `postgres://postgres:${password}@postgres:5432/hearth`;
    const given = `RESTORE_DATABASE_URL=${address}`;
    const restore = ["hearth", "restore", "--yes"];
    await expect(
      testbed.docker("a", "exec", "--env", given, on, ...restore),
    ).rejects.toThrow(/the database is not empty/);
    restore.push("--set-aside");
    await testbed.docker("a", "exec", "--env", given, on, ...restore);
    for (const edge of EDGES) {
      await chat(edge, key, "restored");
    }
  });

  test("Redis rejects plain text, and clients of another authority reject Redis", async () => {
    const { own, foreign } = await authorities();
    const password = await settingOf(running().testbed, "redisPassword");
    const ping = async (ca: string | null): Promise<string> => {
      const redis = new Redis({
        host: addresses.a,
        password,
        lazyConnect: true,
        ...(ca === null ? {} : { tls: { ca } }),
        retryStrategy: () => null,
        maxRetriesPerRequest: 0,
      });
      let trouble: Error | undefined;
      redis.on("error", (error: Error) => (trouble ??= error));
      try {
        await redis.connect();
        return await redis.ping();
      } catch (error) {
        throw trouble ?? error;
      } finally {
        redis.disconnect();
      }
    };
    expect(await ping(own)).toBe("PONG");
    await expect(ping(null)).rejects.toThrow();
    await expect(ping(foreign)).rejects.toThrow(/certificate/);
  });

  test.each([
    ["the gateway", 4444, "/health/liveliness", ["a", "b"]],
    ["the notes store", 6984, "/_up", ["a"]],
    ["the supervisor", 4443, "/healthz", ["a", "b"]],
  ] as const)(
    "%s answers by TLS alone, and who trusts another authority refuses it",
    async (_service, port, path, hosts) => {
      const { own, foreign } = await authorities();
      for (const host of hosts) {
        const url = `${addresses[host]}:${port}${path}`;
        expect(await askTls(`https://${url}`, { ca: own })).toMatchObject({
          status: 200,
        });
        await expect(askTls(`https://${url}`, { ca: foreign })).rejects.toThrow(
          /certificate/,
        );
        const plain = await fetch(`http://${url}`);
        expect(plain.status).toBe(400);
        expect(await plain.text()).toContain("HTTP request to an HTTPS server");
      }
    },
  );

  test("the ports behind it are not published", async () => {
    for (const address of Object.values(addresses)) {
      for (const port of [4001, 4080]) {
        await expect(
          fetch(`http://${address}:${port}/`),
          `${address}:${port}`,
        ).rejects.toMatchObject({ cause: { code: "ECONNREFUSED" } });
      }
    }
  });

  test("a supervisor rejects an endpoint whose certificate names another host", async () => {
    const { testbed } = running();
    const statusOf = (name: string) =>
      testbed.docker(
        ...(["a", "exec", "hearth-supervisor", "node", "-e"] as const),
        `fetch("https://${name}:4443/healthz").then(({ status }) => console.log(status), ({ cause }) => console.log(cause.code))`,
      );
    expect(await statusOf(addresses.b)).toBe("200\n");
    // This host's own endpoint under its Docker name.
    expect(await statusOf("tls")).toBe("ERR_TLS_CERT_ALTNAME_INVALID\n");
  });

  test("a host whose gateway is stopped is served by the other host's gateway", async () => {
    const { testbed, key } = running();
    await testbed.docker("a", "stop", "--time", "150", "hearth-gateway");
    try {
      await chat(EDGES[0], key, "through both edges");
    } finally {
      await testbed.docker("a", "start", "hearth-gateway");
    }
    await allHealthy(testbed);
  });

  test("due certificates are renewed under load, and containers without them are kept", async () => {
    const { testbed, key } = running();
    const up = () => testbed.stack.up({ parallel: PARALLEL, onOutput: quiet });
    const load = callSteadily({ baseUrls: EDGES, key, perSecond: 50 });
    try {
      // Issued a year ago: still valid, but due for renewal.
      const now = Date.now;
      vi.spyOn(Date, "now").mockImplementation(() => now() - YEAR_MS);
      await timed("up a year ago", up);
      vi.restoreAllMocks();
      const due = await shownByRedis();
      const before = await containerIds(testbed);
      await timed("renewal", up);
      expect(await changedSince(testbed, before)).toEqual([
        "a hearth-postgres",
        "a hearth-redis",
        "a hearth-supervisor",
        "a hearth-tls",
        "b hearth-supervisor",
        "b hearth-tls",
      ]);
      const renewed = await shownByRedis();
      expect(renewed.serialNumber).not.toBe(due.serialNumber);
      expect(Date.parse(renewed.validTo) - Date.parse(due.validTo)).toBe(
        YEAR_MS,
      );
    } finally {
      const report = await load.stop();
      expectNoFailedCall(report, MAX_WAIT_MS.rotation, say);
    }
    await allHealthy(testbed);
  });
});

function shownByRedis(): Promise<X509Certificate> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      host: addresses.a,
      port: 6379,
      rejectUnauthorized: false,
    });
    socket.once("error", reject);
    socket.once("secureConnect", () => {
      const { raw }: PeerCertificate = socket.getPeerCertificate();
      socket.destroy();
      resolve(new X509Certificate(raw));
    });
  });
}
