import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import type { RedisPlace } from "../../core/redis/place.ts";
import { serversAllowed } from "./allowed.ts";
import { freePort } from "./ports.ts";
import { redisAt } from "./redis.ts";
import { waitFor } from "../wait-for.ts";

/** A primary and a replica under three sentinels, on free ports and without persistence. */
export interface TestSentinels {
  readonly ports: readonly number[];
  readonly masterName: string;
  readonly place: RedisPlace;
  /** A client for the test, which follows the primary; closed with the servers. */
  readonly client: Redis;
  /** Kills the primary and waits until the other one is promoted; its data is lost when it is started again. */
  failOver(): Promise<void>;
  /** Starts the one that was killed; it becomes the replica. Waits until it has the data of the primary. */
  rejoin(): Promise<void>;
  remove(): Promise<void>;
}

interface SentinelOptions {
  /** Of Redis; the user `gateway` has the password too. */
  readonly password?: string;
  readonly sentinelPassword?: string;
}

const NAME = "limits";
/** What the docs recommend for the gateway's user. */
const GATEWAY_RULES = "~* +@all -@admin -@dangerous +info";
const SENTINELS = 3;
const DOWN_AFTER_MS = 700;

export async function startSentinels(
  options: SentinelOptions = {},
): Promise<TestSentinels> {
  serversAllowed();
  const directory = mkdtempSync(join(tmpdir(), "hearth-test-sentinel-"));
  const group = new SentinelGroup(directory, options);
  try {
    await group.start();
  } catch (error) {
    await group.remove();
    throw error;
  }
  return group;
}

class SentinelGroup implements TestSentinels {
  readonly masterName = NAME;
  readonly #directory: string;
  readonly #options: SentinelOptions;
  readonly #servers = new Map<number, ChildProcess>();
  #ports: readonly number[] = [];
  #redisPorts: readonly number[] = [];
  #client: Redis | null = null;
  #killed: number | null = null;

  constructor(directory: string, options: SentinelOptions) {
    this.#directory = directory;
    this.#options = options;
  }

  get ports(): readonly number[] {
    return this.#ports;
  }

  get place(): RedisPlace {
    const { password, sentinelPassword } = this.#options;
    const [first = 0, ...others] = this.#ports;
    const node = (port: number) => ({ host: "127.0.0.1", port });
    return redisAt(first, {
      nodes: [node(first), ...others.map(node)],
      sentinel: {
        masterName: NAME,
        username: null,
        password: sentinelPassword ?? null,
      },
      password: password ?? null,
    });
  }

  get client(): Redis {
    if (this.#client === null) {
      throw new Error("the sentinels have not started");
    }
    return this.#client;
  }

  async start(): Promise<void> {
    const [primary, replica] = [await freePort(), await freePort()];
    this.#redisPorts = [primary, replica];
    await this.#startRedis(primary, null);
    await this.#startRedis(replica, primary);
    this.#ports = await Promise.all(
      Array.from({ length: SENTINELS }, freePort),
    );
    await Promise.all(
      this.#ports.map((port) => this.#startSentinel(port, primary)),
    );
    for (const port of this.#ports) {
      await this.#until(`sentinel ${port} to know the others`, async () => {
        const state = await this.#stateOf(port);
        return (
          state.get("num-slaves") === "1" &&
          state.get("num-other-sentinels") === String(SENTINELS - 1)
        );
      });
    }
    const { password, sentinelPassword } = this.#options;
    this.#client = new Redis({
      sentinels: this.#ports.map((port) => ({ host: "127.0.0.1", port })),
      name: NAME,
      ...(password === undefined ? {} : { password }),
      ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
      retryStrategy: () => 100,
      maxRetriesPerRequest: null,
    });
    this.#client.on("error", () => undefined);
    await this.#client.ping();
  }

  async failOver(): Promise<void> {
    const primary = await this.#primary();
    await this.#kill(primary);
    this.#killed = primary;
    await this.#until("the replica to be promoted", async () => {
      const promoted = await this.#primary();
      return (
        promoted !== primary &&
        (await this.#info(promoted)).includes("role:master")
      );
    });
  }

  async rejoin(): Promise<void> {
    if (this.#killed === null) {
      throw new Error("no server was killed");
    }
    await this.#startRedis(this.#killed, await this.#primary());
    this.#killed = null;
    for (const port of this.#ports) {
      await this.#until("the sentinels to see the replica", async () => {
        const flags = (await this.#replicaOf(port)).get("flags");
        return flags === "slave";
      });
    }
  }

  async remove(): Promise<void> {
    this.#client?.disconnect();
    await Promise.all(
      [...this.#servers.keys()].map((port) => this.#kill(port)),
    );
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #startRedis(port: number, primary: number | null): Promise<void> {
    const { password } = this.#options;
    await this.#launch(port, [
      "--port",
      String(port),
      "--bind",
      "127.0.0.1",
      "--save",
      "",
      "--repl-diskless-sync-delay",
      "0",
      "--dir",
      this.#directory,
      ...(password === undefined
        ? []
        : [
            "--requirepass",
            password,
            "--masterauth",
            password,
            "--user",
            ...`gateway on >${password} ${GATEWAY_RULES}`.split(" "),
          ]),
      ...(primary === null
        ? []
        : ["--replicaof", "127.0.0.1", String(primary)]),
    ]);
    if (primary !== null) {
      await this.#until("the replica to have the data", async () =>
        (await this.#info(port)).includes("master_link_status:up"),
      );
    }
  }

  async #startSentinel(port: number, primary: number): Promise<void> {
    const { password, sentinelPassword } = this.#options;
    const file = join(this.#directory, `sentinel-${port}.conf`);
    const lines = [
      `port ${port}`,
      "bind 127.0.0.1",
      `dir ${this.#directory}`,
      `sentinel monitor ${NAME} 127.0.0.1 ${primary} 2`,
      `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
      `sentinel failover-timeout ${NAME} 5000`,
      ...(password === undefined
        ? []
        : [`sentinel auth-pass ${NAME} ${password}`]),
      ...(sentinelPassword === undefined
        ? []
        : [
            `requirepass ${sentinelPassword}`,
            `sentinel sentinel-pass ${sentinelPassword}`,
          ]),
    ];
    writeFileSync(file, `${lines.join("\n")}\n`);
    await this.#launch(port, [file, "--sentinel"]);
  }

  async #launch(port: number, args: readonly string[]): Promise<void> {
    const child = spawn("redis-server", args, { stdio: "ignore" });
    this.#servers.set(port, child);
    await this.#until(`redis-server on port ${port}`, () => {
      if (child.exitCode !== null) {
        throw new Error(`redis-server did not start on port ${port}`);
      }
      return this.#ask(port, async (redis) => (await redis.ping()) === "PONG");
    });
  }

  async #kill(port: number): Promise<void> {
    const child = this.#servers.get(port);
    this.#servers.delete(port);
    if (child === undefined || child.exitCode !== null) {
      return;
    }
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  /** As most sentinels say. */
  async #primary(): Promise<number> {
    const named = await Promise.all(
      this.#ports.map((port) =>
        this.#ask(port, async (redis) => {
          const [, of] = (await redis.call("SENTINEL", [
            "get-master-addr-by-name",
            NAME,
          ])) as [string, string];
          return Number(of);
        }),
      ),
    );
    return (
      this.#redisPorts.find(
        (port) => named.filter((one) => one === port).length > SENTINELS / 2,
      ) ?? 0
    );
  }

  #info(port: number): Promise<string> {
    return this.#ask(port, (redis) => redis.info("replication"));
  }

  #stateOf(sentinel: number): Promise<ReadonlyMap<string, string>> {
    return this.#ask(sentinel, async (redis) =>
      fieldsOf(await redis.call("SENTINEL", ["master", NAME])),
    );
  }

  #replicaOf(sentinel: number): Promise<ReadonlyMap<string, string>> {
    return this.#ask(sentinel, async (redis) => {
      const [first] = (await redis.call("SENTINEL", [
        "replicas",
        NAME,
      ])) as unknown[];
      return fieldsOf(first);
    });
  }

  async #ask<T>(port: number, ask: (redis: Redis) => Promise<T>): Promise<T> {
    const { password, sentinelPassword } = this.#options;
    const login = this.#redisPorts.includes(port) ? password : sentinelPassword;
    const redis = new Redis({
      host: "127.0.0.1",
      port,
      ...(login === undefined ? {} : { password: login }),
      lazyConnect: true,
      enableReadyCheck: false,
      retryStrategy: () => null,
    });
    redis.on("error", () => undefined);
    try {
      await redis.connect();
      return await ask(redis);
    } finally {
      redis.disconnect();
    }
  }

  #until(what: string, is: () => boolean | Promise<boolean>): Promise<true> {
    return waitFor(what, () => Promise.resolve(is()).catch(() => false));
  }
}

/** A list of names and values, or the map of RESP3. */
function fieldsOf(reply: unknown): ReadonlyMap<string, string> {
  const list = Array.isArray(reply) ? reply.map(String) : [];
  return new Map(
    list.flatMap((name, at) =>
      at % 2 === 0 ? [[name, list[at + 1] ?? ""] as const] : [],
    ),
  );
}
