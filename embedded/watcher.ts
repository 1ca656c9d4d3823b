import type { CheckState } from "../supervisor/checks/state.ts";
import type { CheckView } from "../supervisor/checks/watched.ts";
import { loadConfig, type LoadedConfig } from "../supervisor/config/load.ts";
import { variablesOf } from "../supervisor/config/variables.ts";
import { withContainerChecks } from "../supervisor/runtimes/docker/container-checks.ts";
import { containerName } from "../supervisor/runtimes/docker/container-view.ts";
import {
  createContainerRuntime,
  type ContainerRuntime,
} from "../supervisor/runtimes/docker/container-runtime.ts";
import { checkGatewayConfig } from "../supervisor/runtimes/docker/gateway-config.ts";
import {
  openEngine,
  type Engine,
} from "../supervisor/runtimes/docker/engine.ts";
import { createHome, type Home } from "../supervisor/home/home.ts";
import { lockHome } from "../supervisor/home/lock.ts";
import { configFiles } from "./stack-config.ts";
import {
  readPort,
  readVariable,
  type Environment,
} from "../core/environment.ts";
import { Failure, textOf } from "../core/failure.ts";
import {
  openHistory,
  tolerateFullDisk,
  type History,
} from "../supervisor/history/history.ts";
import { startTimeOf } from "../supervisor/runtimes/process/identity.ts";
import {
  readRunFile,
  writeRunFile,
} from "../supervisor/runtimes/process/run-file.ts";
import type {
  ServiceState,
  ServiceView,
} from "../supervisor/runtimes/runtime.ts";
import { openConsole } from "../console/console.ts";
import { Supervision } from "../supervisor/supervision.ts";

export interface WatcherOptions {
  readonly home: Home;
  readonly env: Environment;
  /** Checks and restarts this host's containers; otherwise nothing can be restarted. */
  readonly containers: boolean;
  readonly onNotice: (sentence: string) => void;
  readonly onService: (view: ServiceView, before: ServiceState) => void;
  readonly onCheck: (view: CheckView, before: CheckState) => void;
}

export interface Watcher {
  readonly address: string;
  readonly stop: () => Promise<void>;
}

/** The prefix of the names of this host's containers. */
function containerPrefix(env: Environment): string {
  return readVariable("HEARTH_CONTAINER_PREFIX", env) ?? "hearth";
}

/**
 * Starts a supervisor that runs no services itself: it checks what its configuration names and this host's containers,
 * restarts containers, keeps the history and sends alerts.
 */
export async function startWatcher(options: WatcherOptions): Promise<Watcher> {
  const { home, env, onNotice } = options;
  const config = readConfig(options);
  const engine = options.containers ? openContainerEngine(env) : undefined;
  process.umask(0o077);
  createHome(home);
  const lock = lockHome(home.lock);
  if (lock === undefined) {
    throw new Failure(
      `another supervisor runs on ${home.root}: stop it, or choose another directory with HEARTH_HOME.`,
    );
  }
  const history = tolerateFullDisk(
    openHistory(home.history, Date.now, onNotice),
    onNotice,
  );
  const runtime =
    engine === undefined ? undefined : createRuntime(engine, history, options);
  const close = async () => {
    await runtime?.close();
    history.close();
    lock.release();
  };
  try {
    const supervision = new Supervision({
      home,
      env,
      config,
      history,
      onCheck: options.onCheck,
      onNotice,
    });
    return await startSupervision(supervision, runtime, options, close);
  } catch (error) {
    await close();
    throw error;
  }
}

function readConfig({ home, env, containers }: WatcherOptions): LoadedConfig {
  const loaded = loadConfig(configFiles(env), variablesOf(home, env));
  if (!containers) {
    return loaded;
  }
  const services = (readVariable("HEARTH_CONTAINERS", env) ?? "")
    .split(" ")
    .filter((name) => name !== "");
  const checks = withContainerChecks(loaded.config.checks, services);
  return { ...loaded, config: { ...loaded.config, checks } };
}

function openContainerEngine(env: Environment): Engine {
  return openEngine(
    readVariable("DOCKER_HOST", env) ?? "unix:///var/run/docker.sock",
    containerName("socket-proxy", containerPrefix(env)),
  );
}

function createRuntime(
  engine: Engine,
  history: History,
  { env, onService, onNotice }: WatcherOptions,
): ContainerRuntime {
  return createContainerRuntime({
    engine,
    prefix: containerPrefix(env),
    history,
    onChange: onService,
    onTrouble: onNotice,
    validate: async (name) => {
      if (name === "gateway") {
        await checkGatewayConfig(env);
      }
    },
  });
}

/** Opens the console and starts all checks. `close` ends what the caller opened. */
async function startSupervision(
  supervision: Supervision,
  runtime: ContainerRuntime | undefined,
  options: WatcherOptions,
  close: () => Promise<void>,
): Promise<Watcher> {
  const { env } = options;
  const console = await openConsole(supervision, {
    host: readVariable("HEARTH_SUPERVISOR_HOST", env) ?? "127.0.0.1",
    port: readPort("HEARTH_SUPERVISOR_PORT", 4080, env),
    onStopRequested: undefined,
  });
  recordAddress(options, console.address);
  if (runtime !== undefined) {
    await runtime.start();
    supervision.show(runtime);
  }
  supervision.start();
  return {
    address: console.address,
    stop: async () => {
      await supervision.rest();
      await console.close();
      recordAddress(options, null);
      await close();
    },
  };
}

/** Commands on this machine find the supervisor by its recorded address and process before they send it their token. */
function recordAddress(
  { home, onNotice }: WatcherOptions,
  address: string | null,
): void {
  const { pid } = process;
  try {
    writeRunFile(home.runFile, {
      ...readRunFile(home.runFile),
      supervisor:
        address === null
          ? null
          : {
              pid,
              startTime: startTimeOf(pid) ?? "",
              address,
              port: Number(new URL(address).port),
            },
    });
  } catch (error) {
    onNotice(`${home.runFile} cannot be written: ${textOf(error)}`);
  }
}
