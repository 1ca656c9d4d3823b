import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { pino, stdSerializers, type Logger } from "pino";
import { openLogOutput } from "../core/log-output.ts";
import { onStopSignals } from "../core/signals.ts";
import {
  formatProblem,
  loadConfig,
  type GatewayConfig,
  type LoadResult,
} from "./config/load.ts";
import { findPredecessor, startSuccessor } from "./handover.ts";
import { StartError } from "./start-error.ts";
import { startGateway } from "./start.ts";

const projectRoot = fileURLToPath(new URL("..", import.meta.url));

/** Prints mistakes and warnings, one per line; exits with 1 if there is a mistake. */
function requireConfig(result: LoadResult): GatewayConfig {
  const problems = result.ok ? result.warnings : result.problems;
  for (const problem of problems) {
    process.stderr.write(`hearth: ${formatProblem(problem)}\n`);
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
  // pino serializes errors only under the name `err` by default.
  const serializers = { error: stdSerializers.err };
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

const given = readArguments();
const readConfig = () =>
  loadConfig({ ...given, env: process.env, projectRoot });
const config = requireConfig(readConfig());
if (given.check) {
  process.exit(0);
}
const log = createLog();
const predecessor = findPredecessor(process.env);
try {
  await predecessor?.takeOver();
  const running = await startGateway({
    config,
    readConfig,
    log,
    version: readVersion(),
    env: process.env,
    listenFd: predecessor?.listenFd,
  });
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
  process.on("SIGHUP", () => {
    running.gateway
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
  });
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
} catch (error) {
  if (!(error instanceof StartError)) {
    throw error;
  }
  process.stderr.write(`hearth: ${error.message}\n`);
  process.exit(1);
}
