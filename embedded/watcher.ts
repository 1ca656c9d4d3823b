import type { CheckState } from "../supervisor/checks/state.ts";
import type { CheckView } from "../supervisor/checks/watched.ts";
import { loadConfig, type LoadedConfig } from "../supervisor/config/load.ts";
import { variablesOf } from "../supervisor/config/variables.ts";
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
} from "../supervisor/history/history.ts";
import { startTimeOf } from "../supervisor/runtimes/process/identity.ts";
import {
  readRunFile,
  writeRunFile,
} from "../supervisor/runtimes/process/run-file.ts";
import { openConsole } from "../console/console.ts";
import { Supervision } from "../supervisor/supervision.ts";
import {
  planWatchedRuntime,
  type WatchedEvents,
  type WatchedKind,
  type WatchedRuntime,
  type WatchedRuntimePlan,
} from "./watched-runtime.ts";

interface WatcherOptions extends WatchedEvents {
  readonly home: Home;
  readonly env: Environment;
  readonly runtime: WatchedKind;
  /** The directory of the service account's files; by default where Kubernetes mounts them. */
  readonly serviceAccount?: string;
  readonly onCheck: (view: CheckView, before: CheckState) => void;
}

export interface Watcher {
  readonly address: string;
  readonly stop: () => Promise<void>;
}

/**
 * Starts a supervisor that runs no services itself: it checks what its configuration names and what its runtime lists, restarts
 * containers, keeps the history and sends alerts.
 */
export async function startWatcher(options: WatcherOptions): Promise<Watcher> {
  const { home, env, onNotice } = options;
  const plan = planWatchedRuntime(options.runtime, env, options.serviceAccount);
  const config = readConfig(options, plan);
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
  const runtime = plan?.create(history, options);
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

function readConfig(
  { home, env }: WatcherOptions,
  plan: WatchedRuntimePlan | undefined,
): LoadedConfig {
  const loaded = loadConfig(configFiles(env), variablesOf(home, env));
  if (plan === undefined) {
    return loaded;
  }
  const checks = plan.withChecks(loaded.config.checks);
  return { ...loaded, config: { ...loaded.config, checks } };
}

/** Opens the console and starts all checks. `close` ends what the caller opened. */
async function startSupervision(
  supervision: Supervision,
  runtime: WatchedRuntime | undefined,
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
