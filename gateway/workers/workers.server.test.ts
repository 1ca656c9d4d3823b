import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  throwAwayDatabase,
  type ThrowAwayDatabase,
} from "../../test/servers/database.ts";
import {
  createGatewayProcess,
  type GatewayProcess,
} from "../../test/servers/gateway-process.ts";
import { MASTER_KEY, modelYaml } from "../../test/servers/gateway.ts";
import { programEnv } from "../../test/servers/program-env.ts";
import {
  startMockProvider,
  type MockProvider,
} from "../../test/servers/provider.ts";
import {
  hasRedisServer,
  startRedis,
  type TestRedis,
} from "../../test/servers/redis.ts";

const POLL = { timeout: 60_000, interval: 50 };
const TIMEOUT = { timeout: 120_000 };

interface Answer {
  /** 0: the connection broke off. */
  readonly status: number;
  readonly text: string;
}

describe.runIf(hasRedisServer())("a gateway of two workers", () => {
  let redis: TestRedis;
  let database: ThrowAwayDatabase;
  let provider: MockProvider;
  let gateway: GatewayProcess;
  let ledger: pg.Client;
  const directory = mkdtempSync(join(tmpdir(), "hearth-test-workers-"));
  const successorFile = join(directory, "successor.json");

  beforeAll(async () => {
    redis = await startRedis();
    database = await throwAwayDatabase();
    provider = await startMockProvider();
    gateway = await createGatewayProcess({
      yaml: yamlFor(2),
      databaseUrl: database.url,
      redisPort: redis.port,
      env: { HEARTH_SUCCESSOR: successorFile },
    });
    ledger = new pg.Client({ connectionString: database.url });
    await ledger.connect();
    await gateway.start();
  }, 120_000);

  afterAll(async () => {
    await gateway?.remove();
    await ledger?.end();
    await provider?.close();
    await database?.drop();
    await redis?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  function yamlFor(workers: number, more = ""): string {
    return modelYaml(
      provider.url,
      `${more}
general_settings:
  workers: ${workers}
`,
    );
  }

  function rewrite(yaml: string): void {
    writeFileSync(join(gateway.directory, "gateway.yaml"), yaml);
  }

  /** On a connection of its own, which the next worker gets. */
  async function ask(
    method: "GET" | "POST",
    path: string,
    body?: unknown,
    key = MASTER_KEY,
  ): Promise<Answer> {
    try {
      const answer = await request(gateway.url + path, {
        method,
        reset: true,
        headers: {
          authorization: `Bearer ${key}`,
          "content-type": "application/json",
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: answer.statusCode, text: await answer.body.text() };
    } catch (error) {
      return { status: 0, text: (error as Error).message };
    }
  }

  /** Parsed; of a type that the test asserts. */
  async function json<T>(path: string, body?: unknown): Promise<T> {
    const { text } = await ask(body === undefined ? "GET" : "POST", path, body);
    return JSON.parse(text) as T;
  }

  async function createKey(fields: object = {}): Promise<string> {
    const { key } = await json<{ key: string }>("/key/generate", fields);
    return key;
  }

  function chat(key: string, prompt: string): Promise<Answer> {
    const messages = [{ role: "user", content: prompt }];
    return ask(
      "POST",
      "/v1/chat/completions",
      { model: "mock", messages },
      key,
    );
  }

  function slow(key: string, delayMs: number): Promise<Answer> {
    return chat(key, `wait [mock]${JSON.stringify({ delayMs })}`);
  }

  /** Each of the next requests reaches another worker. */
  async function ofBoth<T>(read: () => Promise<T>): Promise<readonly T[]> {
    return [await read(), await read()];
  }

  function workers(primary = gateway.pid()): readonly number[] {
    try {
      return execFileSync("pgrep", ["-P", `${primary}`], {
        encoding: "utf8",
      })
        .trim()
        .split("\n")
        .map(Number);
    } catch {
      // pgrep fails when there is none.
      return [];
    }
  }

  /** As `hearth up` starts the next release. */
  function successorPlan(started: string): object {
    const main = join(import.meta.dirname, "../main.ts");
    const config = join(gateway.directory, "gateway.yaml");
    return {
      file: process.execPath,
      args: [main, "--config", config, "--port", `${gateway.port}`],
      cwd: directory,
      env: {
        ...programEnv(),
        DATABASE_URL: database.url,
        PROXY_MASTER_KEY: MASTER_KEY,
        HEARTH_JOURNAL_DIR: join(gateway.directory, "journal"),
        HEARTH_DRAIN_NOTICE: "0s",
        REDIS_HOST: "127.0.0.1",
        REDIS_PORT: `${redis.port}`,
      },
      log: join(directory, "log"),
      started,
    };
  }

  async function metric(name: string): Promise<number> {
    const { text } = await ask("GET", "/metrics");
    return text
      .split("\n")
      .filter(
        (line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `),
      )
      .reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
  }

  async function countRows(where = "true"): Promise<number> {
    const { rows } = await ledger.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM spend_log WHERE ${where}`,
    );
    return rows[0]?.count ?? 0;
  }

  /** Each call that reached the provider is in the ledger once, and all sums agree. */
  async function expectWholeLedger(): Promise<void> {
    const sent = provider.requests.map(({ id }) => id);
    await expect
      .poll(async () => {
        const { rows } = await ledger.query<{ request_id: string }>(
          "SELECT request_id FROM spend_log",
        );
        return rows.map(({ request_id }) => request_id).toSorted();
      }, POLL)
      .toEqual(sent.toSorted());
    const { rows } = await ledger.query("SELECT * FROM spend_check");
    expect(rows).toEqual([]);
  }

  test(
    "serves one port, with one journal and one instance for each worker",
    TIMEOUT,
    async () => {
      expect(workers()).toHaveLength(2);
      const ready = await ofBoth(() =>
        json<{ workers: unknown }>("/health/readiness"),
      );
      expect(ready.map((one) => one.workers)).toEqual(
        Array(2).fill({ ready: 2, configured: 2 }),
      );
      const seen = await ofBoth(() =>
        json<{ instances: { instance: string; this_one: boolean }[] }>(
          "/instances",
        ),
      );
      const own = seen.map(
        ({ instances }) => instances.find((one) => one.this_one)?.instance,
      );
      const journals = [".", "worker-2"].map((name) =>
        readFileSync(
          join(gateway.directory, "journal", name, "instance"),
          "utf8",
        ).trim(),
      );
      expect(own.toSorted()).toEqual(journals.toSorted());
    },
  );

  test(
    "spends a budget exactly, whichever worker is asked, and counts for all of them",
    TIMEOUT,
    async () => {
      const first = await createKey();
      expect((await chat(first, "hello")).status).toBe(200);
      const [cost] = await (async () => {
        await expect.poll(() => countRows(), POLL).toBe(1);
        const { rows } = await ledger.query<{ spend: number }>(
          "SELECT spend::float8 AS spend FROM spend_log",
        );
        return rows.map(({ spend }) => spend);
      })();
      expect(cost).toBeGreaterThan(0);
      const key = await createKey({ max_budget: 6 * (cost ?? 0) });
      const statuses: number[] = [];
      for (let call = 0; call < 10; call++) {
        statuses.push((await chat(key, "hello")).status);
      }
      expect(statuses).toEqual([
        ...Array<number>(6).fill(200),
        ...Array<number>(4).fill(400),
      ]);
      const counted = await ofBoth(() => metric("hearth_calls_total"));
      expect(counted).toEqual([7, 7]);
      expect(await metric("hearth_build_info")).toBe(1);
      await expectWholeLedger();
    },
  );

  test("reloads all workers", TIMEOUT, async () => {
    const group = 'router_settings: { model_group_alias: { "also": "mock" } }';
    rewrite(yamlFor(2, group));
    process.kill(gateway.pid(), "SIGHUP");
    const isKnown = async () =>
      (await ask("GET", "/v1/models")).text.includes('"also"');
    await expect.poll(() => ofBoth(isKnown), POLL).toEqual([true, true]);
    rewrite(yamlFor(3));
    const reloaded = await json<{ need_restart: string[] }>(
      "/config/reload",
      {},
    );
    expect(reloaded.need_restart).toEqual(["server.workers"]);
    expect(await ofBoth(isKnown)).toEqual([false, false]);
    rewrite(yamlFor(2));
    await json("/config/reload", {});
  });

  test(
    "after kill -9 of a worker, the other serves, a new one replays its journal, and nothing is lost or counted twice",
    TIMEOUT,
    async () => {
      const key = await createKey();
      const counted = await metric("hearth_calls_total");
      const sentBefore = provider.requests.length;
      const calls = Array.from({ length: 12 }, () => slow(key, 1_000));
      await expect
        .poll(() => provider.requests.length - sentBefore, POLL)
        .toBe(12);
      const [victim, survivor] = workers();
      process.kill(victim ?? 0, "SIGKILL");
      const during = await chat(key, "hello");
      expect(during.status).toBe(200);
      const answers = (await Promise.all(calls)).map(({ status }) => status);
      expect(answers.filter((status) => status === 200)).toHaveLength(6);
      expect(answers.filter((status) => status === 0)).toHaveLength(6);
      await gateway.untilReady();
      expect(workers()).toHaveLength(2);
      expect(workers()).toContain(survivor);
      expect(workers()).not.toContain(victim);
      await expectWholeLedger();
      expect(await countRows("status = 'success'")).toBe(7 + 7);
      expect(await ofBoth(() => metric("hearth_calls_total"))).toEqual(
        Array(2).fill(counted + 7),
      );
    },
  );

  test(
    "a worker that hangs is killed, and the connections that it did not take are served by another",
    TIMEOUT,
    async () => {
      const key = await createKey();
      const [victim = 0] = workers();
      // It does not read what it is sent.
      process.kill(victim, "SIGSTOP");
      let answered = 0;
      const calls = Array.from({ length: 4 }, async () => {
        const { status } = await chat(key, "hello");
        answered++;
        return status;
      });
      await expect.poll(() => answered, POLL).toBe(2);
      expect(await Promise.all(calls)).toEqual([200, 200, 200, 200]);
      await gateway.untilReady();
      expect(workers()).not.toContain(victim);
    },
  );

  test(
    "hands over to a successor without a failed call, and SIGTERM finishes all calls",
    TIMEOUT,
    async () => {
      const key = await createKey();
      const started = join(directory, "started");
      writeFileSync(successorFile, JSON.stringify(successorPlan(started)));
      let isOver = false;
      const statuses: number[] = [];
      const calling = (async () => {
        while (!isOver) {
          statuses.push((await chat(key, "hello")).status);
        }
      })();
      await expect.poll(() => statuses.length, POLL).toBeGreaterThan(0);
      process.kill(gateway.pid(), "SIGUSR2");
      expect(await gateway.exited()).toBe(0);
      const before = statuses.length;
      await expect
        .poll(() => statuses.length, POLL)
        .toBeGreaterThan(before + 4);
      isOver = true;
      await calling;
      expect(statuses.filter((status) => status !== 200)).toEqual([]);

      const successor = Number(readFileSync(started, "utf8"));
      const left = workers(successor);
      expect(left).toHaveLength(2);
      const running = slow(key, 1_500);
      await expect
        .poll(
          () => provider.requests.some((one) => !one.finished && !one.aborted),
          POLL,
        )
        .toBe(true);
      process.kill(successor, "SIGTERM");
      expect((await running).status).toBe(200);
      await expect
        .poll(() => [successor, ...left].filter(isAlive), POLL)
        .toEqual([]);
      await expectWholeLedger();
    },
  );

  test(
    "with fewer workers, the journals of the others are brought into the ledger",
    TIMEOUT,
    async () => {
      await gateway.start();
      const key = await createKey();
      const sentBefore = provider.requests.length;
      const calls = Array.from({ length: 8 }, () => slow(key, 60_000));
      await expect
        .poll(() => provider.requests.length - sentBefore, POLL)
        .toBe(8);
      const left = workers();
      await gateway.kill();
      await expect.poll(() => left.filter(isAlive), POLL).toEqual([]);
      expect(
        (await Promise.all(calls)).every(({ status }) => status === 0),
      ).toBe(true);
      rewrite(yamlFor(1));
      await gateway.start();
      expect(workers()).toEqual([]);
      await expectWholeLedger();
      const instances = async () =>
        (await json<{ instances: unknown[] }>("/instances")).instances.length;
      await expect.poll(instances, POLL).toBe(1);
      // Kept for a database that loses rows, for as long as other journals.
      const removed = join(gateway.directory, "journal", "worker-2");
      expect(existsSync(removed)).toBe(true);
      expect(await gateway.stop()).toBe(0);
      utimesSync(join(removed, "acknowledged"), 0, 0);
      await gateway.start();
      await expect.poll(() => existsSync(removed), POLL).toBe(false);
      await expectWholeLedger();
    },
  );

  test(
    "a mistake that every worker finds is printed once, and ends the gateway with 1",
    TIMEOUT,
    async () => {
      const other = await createGatewayProcess({
        yaml: `${yamlFor(2)}  prices_file: prices.json\n`,
        databaseUrl: database.url,
        redisPort: redis.port,
      });
      try {
        writeFileSync(join(other.directory, "prices.json"), "not JSON");
        other.launch();
        expect(await other.exited()).toBe(1);
        expect(other.output().match(/^hearth: .*prices\.json/gm)).toHaveLength(
          1,
        );
      } finally {
        await other.remove();
      }
    },
  );
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
