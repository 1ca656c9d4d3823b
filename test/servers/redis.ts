import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { serversAllowed } from "./allowed.ts";
import type { RedisPlace } from "../../core/redis/place.ts";
import { freePort } from "./ports.ts";

/** A real redis-server on a free port, without persistence unless an option adds it. */
export interface TestRedis {
  readonly port: number;
  /** A client for the test, closed with the server. */
  readonly client: Redis;
  /** Starts it on the same port, empty; as a node of a cluster where the options say so. */
  start(options?: RedisServerOptions): Promise<void>;
  /** Kills it; its data is lost. */
  stop(): Promise<void>;
  /** Stops responding on open connections until `thaw`. */
  freeze(): void;
  thaw(): void;
  remove(): Promise<void>;
}

interface RedisServerOptions {
  readonly cluster?: boolean;
  /** Keeps an append-only file, which cannot be larger than this, as on a full disk. */
  readonly appendOnlyKiB?: number;
  /** Reads this many milliseconds for each key of its append-only file, and answers calls with LOADING meanwhile. */
  readonly loadMsPerKey?: number;
}

const INSTALL =
  "redis-server is not installed: install it (apt install redis-server, brew install redis) and run again.";

const installed = spawnSync("redis-server", ["--version"]).status === 0;

/** Whether tests with Redis can run. If not, prints that they are skipped, or throws in CI. */
export function hasRedisServer(): boolean {
  if (installed) {
    return true;
  }
  if (process.env["CI"]) {
    throw new Error(INSTALL);
  }
  process.stderr.write(`Tests with Redis are skipped. ${INSTALL}\n`);
  return false;
}

/** A Redis of this machine, as a configuration names it. */
export function redisAt(
  port: number,
  more: Partial<RedisPlace> = {},
): RedisPlace {
  return {
    nodes: [{ host: "127.0.0.1", port }],
    sentinel: null,
    username: null,
    password: null,
    database: 0,
    tls: false,
    ca: null,
    ...more,
  };
}

export async function startRedis(
  options: RedisServerOptions = {},
): Promise<TestRedis> {
  serversAllowed();
  if (!installed) {
    throw new Error(INSTALL);
  }
  const directory = mkdtempSync(join(tmpdir(), "hearth-test-redis-"));
  const port = await freePort();
  let server: ChildProcess | null = null;
  const client = new Redis({
    host: "127.0.0.1",
    port,
    lazyConnect: true,
    retryStrategy: () => 100,
    maxRetriesPerRequest: null,
  });
  client.on("error", () => undefined);

  async function start({
    cluster,
    appendOnlyKiB,
    loadMsPerKey,
  }: RedisServerOptions = {}): Promise<void> {
    // The limit is in blocks of 512 bytes; its signal, which would end Redis, is ignored.
    const limited =
      appendOnlyKiB === undefined
        ? ""
        : `trap "" XFSZ; ulimit -f ${2 * appendOnlyKiB}; `;
    const child = spawn(
      "sh",
      [
        "-c",
        `${limited}exec redis-server "$@"`,
        "redis-server",
        "--port",
        String(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        appendOnlyKiB === undefined ? "no" : "yes",
        "--dir",
        directory,
        ...(cluster === true ? ["--cluster-enabled", "yes"] : []),
        ...(loadMsPerKey === undefined
          ? []
          : ["--key-load-delay", String(1000 * loadMsPerKey)]),
      ],
      { stdio: "ignore" },
    );
    server = child;
    for (let tries = 0; ; tries++) {
      if (child.exitCode !== null || tries > 200) {
        throw new Error(`redis-server did not start on port ${port}`);
      }
      const probe = new Redis({
        host: "127.0.0.1",
        port,
        lazyConnect: true,
        retryStrategy: () => null,
        enableReadyCheck: loadMsPerKey === undefined,
      });
      probe.on("error", () => undefined);
      const up = await probe
        .connect()
        .then(() => probe.ping())
        .then(
          () => true,
          (error: unknown) => String(error).includes("LOADING"),
        );
      probe.disconnect();
      if (up) {
        return;
      }
      await sleep(25);
    }
  }

  async function stop(): Promise<void> {
    const child = server;
    server = null;
    if (
      child === null ||
      child.exitCode !== null ||
      child.signalCode !== null
    ) {
      return;
    }
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  await start(options);
  await client.connect();
  return {
    port,
    client,
    start,
    stop,
    freeze: () => void server?.kill("SIGSTOP"),
    thaw: () => void server?.kill("SIGCONT"),
    async remove() {
      client.disconnect();
      await stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
