import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { programEnv } from "./program-env.ts";
import { serversAllowed } from "./allowed.ts";
import { MASTER_KEY } from "./gateway.ts";
import { freePort } from "./ports.ts";

/** A gateway in a separate process, as `npm run gateway` starts it, that can be killed and restarted on its journal. */
export interface GatewayProcess {
  readonly url: string;
  readonly port: number;
  readonly directory: string;
  pid(): number;
  running(): boolean;
  /** Its latest output, for the messages of failed tests. */
  output(): string;
  /** Starts the process on the same port and journal, without waiting until it is ready. */
  launch(): void;
  /** Launches it and waits until readiness returns 200. */
  start(): Promise<void>;
  untilReady(): Promise<void>;
  /** kill -9. */
  kill(): Promise<void>;
  /** Waits until the process ends for any reason; returns the exit code, or null after a signal. */
  exited(): Promise<number | null>;
  /** Sends SIGTERM and waits for the end. */
  stop(): Promise<number | null>;
  /** Kills it and removes its directory. */
  remove(): Promise<void>;
}

interface GatewayProcessOptions {
  readonly yaml: string;
  readonly databaseUrl: string;
  readonly redisPort?: number;
  readonly env?: Readonly<Record<string, string>>;
}

const MAIN = fileURLToPath(new URL("../../gateway/main.ts", import.meta.url));
const READY_WITHIN_MS = 90_000;
const MAX_OUTPUT_CHARACTERS = 20_000;

export async function createGatewayProcess(
  options: GatewayProcessOptions,
): Promise<GatewayProcess> {
  serversAllowed();
  const directory = mkdtempSync(join(tmpdir(), "hearth-test-gateway-"));
  const file = join(directory, "gateway.yaml");
  writeFileSync(file, options.yaml);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  let child: ChildProcess | null = null;
  let output = "";

  function launch(): void {
    const launched = spawn(
      process.execPath,
      [
        "--max-semi-space-size=16",
        MAIN,
        "--config",
        file,
        "--port",
        String(port),
      ],
      {
        stdio: ["ignore", "pipe", "pipe"],
        env: {
          ...programEnv(),
          DATABASE_URL: options.databaseUrl,
          PROXY_MASTER_KEY: MASTER_KEY,
          HEARTH_JOURNAL_DIR: join(directory, "journal"),
          HEARTH_DRAIN_NOTICE: "0s",
          ...(options.redisPort === undefined
            ? {}
            : {
                REDIS_HOST: "127.0.0.1",
                REDIS_PORT: String(options.redisPort),
              }),
          ...options.env,
        },
      },
    );
    for (const stream of [launched.stdout, launched.stderr]) {
      stream.on("data", (chunk: Buffer) => {
        output = (output + chunk.toString()).slice(-MAX_OUTPUT_CHARACTERS);
      });
    }
    child = launched;
  }

  function running(): boolean {
    return (
      child !== null && child.exitCode === null && child.signalCode === null
    );
  }

  async function exited(): Promise<number | null> {
    if (child !== null && running()) {
      await once(child, "exit");
    }
    return child?.exitCode ?? null;
  }

  async function end(signal: NodeJS.Signals): Promise<number | null> {
    if (!running()) {
      return child?.exitCode ?? null;
    }
    const ended = exited();
    child?.kill(signal);
    return ended;
  }

  async function untilReady(): Promise<void> {
    const until = performance.now() + READY_WITHIN_MS;
    while (performance.now() < until) {
      if (!running()) {
        throw new Error(`the gateway ended during its start: ${output}`);
      }
      const ready = await fetch(`${url}/health/readiness`).catch(() => null);
      await ready?.body?.cancel();
      if (ready?.status === 200) {
        return;
      }
      await sleep(25);
    }
    throw new Error(`the gateway did not become ready: ${output}`);
  }

  return {
    url,
    port,
    directory,
    pid: () => child?.pid ?? 0,
    running,
    output: () => output,
    launch,
    async start() {
      launch();
      await untilReady();
    },
    untilReady,
    async kill() {
      await end("SIGKILL");
    },
    exited,
    stop: () => end("SIGTERM"),
    async remove() {
      await end("SIGKILL");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
