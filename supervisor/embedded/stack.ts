import { setTimeout as wait } from "node:timers/promises";
import { answersOk } from "../checks/http-get.ts";
import type { CheckState } from "../checks/state.ts";
import { startWatch, type CheckView, type Watch } from "../checks/watch.ts";
import { readVariable, type Environment } from "../environment.ts";
import { Failure, textOf } from "../failure.ts";
import { openHistory, outliveFullDisk, type History } from "../history.ts";
import { buildApi, listen } from "../http/server.ts";
import { startTimeOf } from "../processes/identity.ts";
import {
  createProcessRuntime,
  type ProcessRuntime,
} from "../processes/process-runtime.ts";
import { readRunFile } from "../processes/run-file.ts";
import type { ServiceState, ServiceView } from "../runtime.ts";
import { findAttention, judge, type Status } from "../status.ts";
import { echoService, writeEchoConfig } from "./echo.ts";
import { gatewayService } from "./gateway.ts";
import { makeHome, type Home } from "./home.ts";
import { lockHome } from "./lock.ts";
import { notesService } from "./notes.ts";
import { choosePorts, type Ports } from "./ports.ts";
import { findPostgresPlace } from "./postgres-place.ts";
import { postgresService } from "./postgres.ts";
import { readOrMakeSecrets, type Secrets } from "./secrets.ts";
import { readStackConfig } from "./stack-config.ts";

export type StackOptions = {
  readonly home: Home;
  readonly env: Environment;
  /** Whether to run the echo and give it an alias. */
  readonly echo: boolean;
  readonly onService: (view: ServiceView, before: ServiceState) => void;
  readonly onCheck: (view: CheckView, before: CheckState) => void;
  readonly onNotice: (sentence: string) => void;
  /** Somebody asked to stop over the API. */
  readonly onStopAsked: (reason: string) => void;
  /** Aborted when the start is no longer wanted: what runs already is stopped. */
  readonly stop: AbortSignal;
  /** Aborted when everything is to end at once. */
  readonly halt: AbortSignal;
};

export type Stack = {
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
};

/** Thrown when another supervisor runs on the same home. */
export class AlreadyRunning extends Failure {}

const loopback = "127.0.0.1";
const readyWithinMs = 30_000;
const rotateEveryMs = 60_000;

/** Starts the embedded stack and everything that keeps it running. Throws a Failure that says what to do. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const { home } = options;
  // Nothing that this process or its children make is for other users to read.
  process.umask(0o077);
  makeHome(home);
  const lock = lockHome(home.lock);
  if (lock === undefined) throw alreadyRunning(home);
  let history: History | undefined;
  try {
    history = outliveFullDisk(openHistory(home.history), options.onNotice);
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
  const begun = Date.now();
  const notices: string[] = [];
  const notice = (sentence: string) => {
    notices.push(sentence);
    options.onNotice(sentence);
  };
  const secrets = readOrMakeSecrets(home);
  const ports = await choosePorts(env, readRunFile(home.runFile));
  const config = readStackConfig(options, ports, secrets);
  config.leftOut.forEach(notice);
  const place = findPostgresPlace(home);
  place.notices.forEach(notice);
  writeEchoConfig(home, options.echo ? ports.echo : undefined);

  let phase: Status["phase"] = "starting";
  let runtime: ProcessRuntime | undefined;
  let watch: Watch | undefined = undefined;
  const address = `http://${loopback}:${ports.supervisor}`;

  function status(): Status {
    const at = Date.now();
    const services = runtime?.list() ?? [];
    const checks = watch?.list() ?? [];
    const attention = findAttention(services, checks);
    return {
      ...judge(phase, services, attention),
      phase,
      at,
      supervisor: {
        pid: process.pid,
        address,
        since: begun,
        home: home.root,
        memoryBytes: process.memoryUsage.rss(),
      },
      services: services.map((service) => ({
        ...service,
        stats: runtime?.stats(service.name) ?? null,
      })),
      checks,
      attention,
      notices,
    };
  }

  const api = buildApi({
    status,
    runtime: () => runtime,
    watch: () => watch,
    history,
    stop: options.onStopAsked,
    operatorPassword:
      readVariable("HEARTH_OPERATOR_PASSWORD", env) ?? secrets.operatorPassword,
  });
  await listen(api, loopback, ports.supervisor);

  try {
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
        address,
        port: ports.supervisor,
      },
      history,
      onTrouble: options.onNotice,
      fingerprintKey: secrets.saltKey,
      onChange: options.onService,
    });
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
  } catch (error) {
    await api.close();
    throw error;
  }
  const rotating = setInterval(() => {
    try {
      runtime?.rotateLogs();
    } catch (error) {
      options.onNotice(`the logs cannot be kept small: ${textOf(error)}`);
    }
  }, rotateEveryMs);
  const addresses = {
    gateway: `http://${loopback}:${ports.gateway}`,
    notes: `http://${loopback}:${ports.notes}`,
    supervisor: address,
  };
  const gatewayReady = await untilReady(addresses.gateway, options.stop);
  watch = startWatch({
    checks: config.config.checks,
    runtime,
    history,
    onChange: options.onCheck,
    onError: (error) =>
      options.onNotice(`a check failed to run: ${textOf(error)}`),
  });
  phase = "running";

  return {
    ports,
    secrets,
    addresses,
    status,
    gatewayReady,
    stop: async (reason) => {
      phase = "stopping";
      watch?.stop();
      clearInterval(rotating);
      history.act("supervisor", "supervisor-stop", reason);
      await runtime?.stop(reason);
      await api.close();
      history.close();
      release();
    },
  };
}

function alreadyRunning(home: Home): AlreadyRunning {
  const { supervisor } = readRunFile(home.runFile);
  return new AlreadyRunning(
    supervisor === null
      ? `another \`hearth up\` is starting or stopping on ${home.root}: wait for it, then try again.`
      : `Hearth already runs (pid ${supervisor.pid}) at ${supervisor.address}: \`hearth status\` shows it, \`hearth down\` stops it.`,
  );
}

async function untilReady(
  gateway: string,
  stop: AbortSignal,
): Promise<boolean> {
  const deadline = Date.now() + readyWithinMs;
  while (Date.now() < deadline && !stop.aborted) {
    const ready = await answersOk(
      `${gateway}/health/readiness`,
      AbortSignal.timeout(2000),
    ).catch(() => false);
    if (ready) return true;
    await wait(100);
  }
  return false;
}
