import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { serversAllowed } from "../../../test/servers/allowed.ts";
import { freePort } from "../../../test/servers/ports.ts";
import { redisAt } from "../../../test/servers/redis.ts";
import { connectRedis } from "../../cache/redis.ts";
import { waitFor } from "../../../test/wait-for.ts";

/** A real redis-server of a test, alone on a free port. */
export interface TestRedis {
  readonly port: number;
  /** A client as the gateway uses it; closed with the server. */
  connect(): Redis;
  /** A connected client. */
  connected(): Promise<Redis>;
  /** Freezes the server: connections stay open without answers. */
  freeze(): void;
  thaw(): void;
  /** Kills the server; all data is lost. */
  kill(): Promise<void>;
  /** Restarts the server on the same port. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export async function startTestRedis(): Promise<TestRedis> {
  serversAllowed();
  const directory = await mkdtemp(join(tmpdir(), "hearth-redis-"));
  const port = await freePort();
  const clients: Redis[] = [];
  let server = launch();
  await answering();

  function launch() {
    const args = ["--port", String(port), "--bind", "127.0.0.1", "--save", ""];
    return spawn("redis-server", [...args, "--dir", directory], {
      stdio: "ignore",
    });
  }

  async function answering(): Promise<void> {
    const probe = connectRedis(redisAt(port), () => undefined);
    try {
      await waitFor("redis-server to answer", () => probe.status === "ready");
    } catch (error) {
      server.kill("SIGKILL");
      throw error;
    } finally {
      probe.disconnect();
    }
  }

  async function kill(): Promise<void> {
    if (server.exitCode !== null || server.signalCode !== null) {
      return;
    }
    const exited = once(server, "exit");
    server.kill("SIGKILL");
    await exited;
  }

  function connect(): Redis {
    const client = connectRedis(redisAt(port), () => undefined);
    clients.push(client);
    return client;
  }

  return {
    port,
    connect,
    async connected() {
      const client = connect();
      await waitFor("redis-server to answer", () => client.status === "ready");
      return client;
    },
    freeze: () => void server.kill("SIGSTOP"),
    thaw: () => void server.kill("SIGCONT"),
    kill,
    async start() {
      server = launch();
      await answering();
    },
    async stop() {
      for (const client of clients) {
        client.disconnect();
      }
      await kill();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
