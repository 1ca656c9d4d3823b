import { setTimeout as wait } from "node:timers/promises";
import { dropLeftRestores } from "../supervisor/backup/replace-database.ts";
import { answersOk } from "../supervisor/checks/http-get.ts";
import type { CheckState } from "../supervisor/checks/state.ts";
import type { CheckView } from "../supervisor/checks/watched.ts";
import { inWords } from "../core/duration.ts";
import { readVariable, type Environment } from "../core/environment.ts";
import { Failure, textOf } from "../core/failure.ts";
import {
  openHistory,
  outliveFullDisk,
  type History,
} from "../supervisor/history/history.ts";
import { alarmOfService } from "../supervisor/runtimes/process/service-alarms.ts";
import { startTimeOf } from "../supervisor/runtimes/process/identity.ts";
import {
  createProcessRuntime,
  type ProcessRuntime,
} from "../supervisor/runtimes/process/process-runtime.ts";
import { readRunFile } from "../supervisor/runtimes/process/run-file.ts";
import {
  ownRelease,
  selectRelease,
  type Release,
} from "../supervisor/release/release.ts";
import { alreadyRunsSentence } from "../supervisor/release/version.ts";
import type {
  ServiceState,
  ServiceView,
} from "../supervisor/runtimes/runtime.ts";
import type { Status } from "../supervisor/status.ts";
import { openConsole } from "../console/console.ts";
import { Supervision } from "../supervisor/supervision.ts";
import { echoService, writeEchoConfig } from "./echo.ts";
import { gatewayService } from "./gateway.ts";
import { makeHome, placeNotices, type Home } from "../supervisor/home/home.ts";
import { lockHome } from "../supervisor/home/lock.ts";
import { notesService } from "./notes.ts";
import { choosePorts, type Ports } from "./ports.ts";
import { migrateCluster } from "./postgres-migration.ts";
import { findPostgresPlace } from "./postgres-place.ts";
import { postgresService } from "./postgres.ts";
import {
  followSecrets,
  readOrMakeSecrets,
  type Secrets,
} from "../supervisor/home/secrets.ts";
import { readStackConfig, stackEnvironment } from "./stack-config.ts";

export interface StackOptions {
  readonly home: Home;
  readonly env: Environment;
  /** Whether to run the echo and give it an alias. */
  readonly echo: boolean;
  readonly onService: (view: ServiceView, before: ServiceState) => void;
  readonly onCheck: (view: CheckView, before: CheckState) => void;
  readonly onNotice: (sentence: string) => void;
  /** Somebody asked to stop over the API. */
  readonly onStopAsked: (reason: string) => void;
  /** The release whose supervisor this one replaces; it takes over again when the start throws. */
  readonly upgradeFrom: Release | undefined;
  /** What an operator should know of how it came to be started. */
  readonly notices: readonly string[];
  /** Aborted when the start is no longer wanted: what runs already is stopped. */
  readonly stop: AbortSignal;
  /** Aborted when everything is to end at once. */
  readonly halt: AbortSignal;
}

export interface Stack {
  readonly ports: Ports;
  readonly secrets: Secrets;
  readonly addresses: {
    readonly gateway: string;
    readonly notes: string;
    readonly supervisor: string;
  };
  readonly status: () => Status;
  /** Whether the gateway can serve calls (its database is there). */
  readonly gatewayReady: boolean;
  /** Stops everything in reverse order, waiting for what runs. */
  readonly stop: (reason: string) => Promise<void>;
  /** Ends the supervisor alone: another one takes over what runs. */
  readonly leave: (reason: string) => Promise<void>;
}

/** Thrown when another supervisor runs on the same home. */
export class AlreadyRunning extends Failure {}

const LOOPBACK = "127.0.0.1";
const READY_WITHIN_MS = 30_000;
const CARE_EVERY_MS = 60_000;

/** Starts the embedded stack and everything that keeps it running. Throws a Failure that says what to do. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const { home } = options;
  // Nothing that this process or its children make is for other users to read.
  process.umask(0o077);
  makeHome(home);
  const lock = lockHome(home.lock);
  if (lock === undefined) {
    throw alreadyRunning(home);
  }
  let history: History | undefined;
  try {
    history = outliveFullDisk(
      openHistory(home.history, Date.now, options.onNotice),
      options.onNotice,
    );
    return await startLocked(options, history, lock.release);
  } catch (error) {
    history?.close();
    lock.release();
    throw error;
  }
}

async function startLocked(
  options: StackOptions,
  history: History,
  release: () => void,
): Promise<Stack> {
  const { home, env } = options;
  const own = ownRelease();
  const upgrading = options.upgradeFrom !== undefined;
  const secrets = followSecrets(home, readOrMakeSecrets(home));
  const ports = await choosePorts(env, readRunFile(home.runFile));
  const started = stackEnvironment(home, env, ports, secrets);
  const config = readStackConfig(home, started, options.echo, ports);
  const found = findPostgresPlace(home);
  writeEchoConfig(home, options.echo ? ports.echo : undefined);
  const supervision = new Supervision({
    home,
    env: started,
    config: {
      ...config,
      leftOut: [
        ...options.notices,
        ...placeNotices(home),
        ...config.leftOut,
        ...found.notices,
      ],
    },
    history,
    onCheck: options.onCheck,
    onNotice: options.onNotice,
  });
  const console = await openConsole(supervision, {
    host: LOOPBACK,
    port: ports.supervisor,
    onStopAsked: options.onStopAsked,
  });
  let runtime: ProcessRuntime;
  try {
    const place = await migrateCluster(found, {
      home,
      secrets,
      signal: options.stop,
      onNotice: (sentence) => supervision.notice(sentence),
    });
    runtime = createProcessRuntime({
      specs: [
        postgresService(place, ports.postgres, secrets),
        notesService(home, ports.notes, secrets),
        ...(options.echo ? [echoService(home, ports.echo)] : []),
        gatewayService(
          home,
          ports.gateway,
          ports.postgres,
          options.echo,
          secrets,
        ),
      ],
      logDirectory: home.logs,
      policy: {
        max: config.config.restarts.max,
        perMs: config.config.restarts.per,
        firstWaitMs: config.config.restarts.first_wait,
        longestWaitMs: config.config.restarts.longest_wait,
      },
      runFile: home.runFile,
      supervisor: {
        pid: process.pid,
        startTime: startTimeOf(process.pid) ?? "",
        address: console.address,
        port: ports.supervisor,
        release: own?.id ?? null,
      },
      history,
      onTrouble: options.onNotice,
      upgrading,
      fingerprintKey: secrets.saltKey,
      onChange: (view, before) => {
        alarmOfService(supervision.alerting, view);
        options.onService(view, before);
      },
    });
    supervision.show(runtime);
    history.act("supervisor", "supervisor-start", "hearth up");
    const starting = runtime;
    const giveUp = () => void starting.stop("told to stop").catch(() => {});
    options.halt.addEventListener("abort", () => starting.halt(), {
      once: true,
    });
    options.stop.addEventListener("abort", giveUp, { once: true });
    options.stop.throwIfAborted();
    await starting.start();
    options.stop.removeEventListener("abort", giveUp);
    await tidyAfterRestore(started, options);
  } catch (error) {
    await console.close();
    throw error;
  }
  const caring = setInterval(() => {
    for (const [care, trouble] of [
      [runtime.rotateLogs, "the logs cannot be kept small"],
      [runtime.keepRunFile, `${home.runFile} cannot be written`],
    ] as const) {
      try {
        care();
      } catch (error) {
        options.onNotice(`${trouble}: ${textOf(error)}`);
      }
    }
  }, CARE_EVERY_MS);
  const addresses = {
    gateway: `http://${LOOPBACK}:${ports.gateway}`,
    notes: `http://${LOOPBACK}:${ports.notes}`,
    supervisor: console.address,
  };
  const gatewayReady = await untilReady(addresses.gateway, options.stop);
  const leave = async (reason: string) => {
    await supervision.rest();
    clearInterval(caring);
    history.act("supervisor", "supervisor-stop", reason);
    await console.close();
    history.close();
    release();
  };
  if (upgrading && !gatewayReady) {
    clearInterval(caring);
    await console.close();
    throw new Failure(
      `the gateway was not ready for calls within ${inWords(READY_WITHIN_MS)}: \`hearth logs gateway\` shows why.`,
    );
  }
  if (own !== undefined) {
    selectRelease(home, own.id);
  }
  supervision.begin();

  return {
    ports,
    secrets,
    addresses,
    status: () => supervision.status(),
    gatewayReady,
    stop: async (reason) => {
      await supervision.rest();
      clearInterval(caring);
      history.act("supervisor", "supervisor-stop", reason);
      await runtime.stop(reason);
      await console.close();
      history.close();
      release();
    },
    leave,
  };
}

/** A restore that was killed with its supervisor left a database; it is no reason not to start. */
async function tidyAfterRestore(
  env: Environment,
  { onNotice, stop }: Pick<StackOptions, "onNotice" | "stop">,
): Promise<void> {
  const databaseUrl = readVariable("RESTORE_DATABASE_URL", env) ?? "";
  try {
    for (const name of await dropLeftRestores(databaseUrl, stop)) {
      onNotice(
        `a restore that was killed had left the database ${name}: it is dropped.`,
      );
    }
  } catch (error) {
    onNotice(
      `what a killed restore may have left could not be looked for: ${textOf(error)}`,
    );
  }
}

function alreadyRunning(home: Home): AlreadyRunning {
  const { supervisor } = readRunFile(home.runFile);
  return new AlreadyRunning(
    supervisor === null
      ? `another \`hearth up\` is starting or stopping on ${home.root}: wait for it, then try again.`
      : alreadyRunsSentence(supervisor),
  );
}

async function untilReady(
  gateway: string,
  stop: AbortSignal,
): Promise<boolean> {
  const deadline = performance.now() + READY_WITHIN_MS;
  while (performance.now() < deadline && !stop.aborted) {
    const ready = await answersOk(
      `${gateway}/health/readiness`,
      AbortSignal.timeout(2000),
    ).catch(() => false);
    if (ready) {
      return true;
    }
    await wait(100);
  }
  return false;
}
