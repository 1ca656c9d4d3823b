import { readFileSync } from "node:fs";
import type { Server } from "node:net";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { pino, type Logger } from "pino";
import { loggedError } from "../core/failure.ts";
import { openLogOutput } from "../core/log-output.ts";
import { onStopSignals } from "../core/signals.ts";
import { formatProblem } from "../core/config/problem.ts";
import { loadConfig, type LoadResult } from "./config/load.ts";
import type { GatewayConfig } from "./config/types.ts";
import { findPredecessor, startSuccessor } from "./handover.ts";
import type { Reloaded } from "./gateway.ts";
import { StartError } from "./start-error.ts";
import type { StartOptions } from "./start.ts";
import type { PrimaryOptions } from "./workers/primary.ts";
import { WORKER_VARIABLE } from "./workers/messages.ts";

const projectRoot = fileURLToPath(new URL("..", import.meta.url));

/** Prints mistakes and warnings, one per line; exits with 1 if there is a mistake. */
function requireConfig(result: LoadResult): GatewayConfig {
  const problems = result.ok ? result.warnings : result.problems;
  for (const problem of problems) {
    const line = `hearth: ${formatProblem(problem)}`;
    printed.push(line);
    process.stderr.write(`${line}\n`);
  }
  if (!result.ok) {
    process.exit(1);
  }
  return result.config;
}

interface Arguments {
  readonly file?: string;
  readonly port?: string;
  /** Only check the configuration. */
  readonly check: boolean;
}

function readArguments(): Arguments {
  try {
    const { values } = parseArgs({
      options: {
        config: { type: "string" },
        port: { type: "string" },
        check: { type: "boolean", default: false },
      },
    });
    return {
      check: values.check,
      ...(values.config === undefined ? {} : { file: values.config }),
      ...(values.port === undefined ? {} : { port: values.port }),
    };
  } catch (error) {
    process.stderr.write(
      `hearth: ${(error as Error).message} Usage: npm run gateway -- --config FILE --port N [--check]\n`,
    );
    process.exit(2);
  }
}

function createLog(): Logger {
  const serializers = { error: loggedError, err: loggedError };
  return process.stdout.isTTY
    ? pino({ serializers, transport: { target: "pino-pretty" } })
    : pino({ serializers }, openLogOutput(1, { sync: false }));
}

function readVersion(): string {
  const manifest = readFileSync(
    new URL("./package.json", import.meta.url),
    "utf8",
  );
  return (JSON.parse(manifest) as { version: string }).version;
}

/** How long a gateway that hands over closes connections after each answer before it drains. */
const HANDOVER_NOTICE_MS = 1_000;

const printed: string[] = [];
const given = readArguments();
const readConfig = () =>
  loadConfig({ ...given, env: process.env, projectRoot });
const config = requireConfig(readConfig());
if (given.check) {
  process.exit(0);
}
const log = createLog();
const worker = readWorker(process.env);
const predecessor = findPredecessor(process.env);
try {
  const options = {
    config,
    readConfig,
    log,
    version: readVersion(),
    env: process.env,
    listenFd: predecessor?.listenFd,
  };
  if (worker !== null) {
    const { runWorker } = await import("./workers/worker.ts");
    await runWorker(worker, options);
  } else {
    const start =
      config.server.workers > 1
        ? await loadWorkers(options)
        : await loadGateway(options);
    await predecessor?.takeOver();
    obeySignals(await start());
  }
} catch (error) {
  if (!(error instanceof StartError)) {
    throw error;
  }
  process.stderr.write(`hearth: ${error.message}\n`);
  process.exit(1);
}

/** The number of this worker; null in a process that starts workers, or serves alone. */
function readWorker(env: NodeJS.ProcessEnv): number | null {
  const number = env[WORKER_VARIABLE];
  delete env[WORKER_VARIABLE];
  return number === undefined || process.send === undefined
    ? null
    : Number(number);
}

/** What this process serves with: a gateway, or its workers. */
interface Serving {
  readonly listener: Server;
  stop(noticeMs?: number): Promise<void>;
  reload(): Promise<Reloaded>;
}

/** Loads the program: calls wait from the end of a predecessor until the start. */
async function loadGateway(
  options: StartOptions,
): Promise<() => Promise<Serving>> {
  const { startGateway } = await import("./start.ts");
  return async () => {
    const running = await startGateway(options);
    return { ...running, reload: () => running.gateway.reload() };
  };
}

/** The same for several processes. Workers that cannot start end this one, with their exit code. */
async function loadWorkers(
  options: Omit<PrimaryOptions, "printed">,
): Promise<() => Promise<Serving>> {
  const { Primary, WorkerFailed } = await import("./workers/primary.ts");
  const primary = new Primary({ ...options, printed });
  const end = (error: unknown) => {
    primary.kill();
    if (!(error instanceof WorkerFailed)) {
      throw error;
    }
    process.exit(error.exitCode);
  };
  primary.failed.catch(end);
  await primary.load().catch(end);
  return async () => {
    await primary.start().catch(end);
    return primary;
  };
}

function obeySignals(running: Serving): void {
  let ending = false;
  const stop = (noticeMs?: number) => {
    if (ending) {
      return;
    }
    ending = true;
    running.stop(noticeMs).then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ error }, "stopping failed");
        process.exit(1);
      },
    );
  };
  process.on("SIGHUP", () => reload(running));
  const successor = process.env["HEARTH_SUCCESSOR"];
  if (successor !== undefined) {
    process.on("SIGUSR2", () => {
      try {
        startSuccessor({
          file: successor,
          server: running.listener,
          log,
          // While it continues to serve, each answer closes its connection: none is idle when the rest are closed.
          onReady: () => stop(HANDOVER_NOTICE_MS),
        });
      } catch (error) {
        log.error({ error }, "the successor could not be started");
      }
    });
  }
  onStopSignals(
    () => stop(),
    () => process.exit(1),
    { signals: ["SIGTERM", "SIGINT"] },
  );
}

function reload(running: Serving): void {
  running
    .reload()
    .then((reloaded) => {
      if (!reloaded.ok) {
        log.error(
          { problems: reloaded.problems.map(formatProblem) },
          "invalid configuration; keeping the current one",
        );
      }
    })
    .catch((error: unknown) => log.error({ error }, "the reload failed"));
}
