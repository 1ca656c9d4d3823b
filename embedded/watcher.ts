import type { CheckState } from "../supervisor/checks/state.ts";
import type { CheckView } from "../supervisor/checks/watched.ts";
import { loadConfig } from "../supervisor/config/load.ts";
import { variablesOf } from "../supervisor/config/variables.ts";
import { withContainerChecks } from "../supervisor/runtimes/docker/container-checks.ts";
import { containerName } from "../supervisor/runtimes/docker/container-view.ts";
import { createContainerRuntime } from "../supervisor/runtimes/docker/container-runtime.ts";
import { checkGatewayConfig } from "../supervisor/runtimes/docker/gateway-config.ts";
import { openEngine } from "../supervisor/runtimes/docker/engine.ts";
import { makeHome, type Home } from "../supervisor/home/home.ts";
import { lockHome } from "../supervisor/home/lock.ts";
import { configFiles } from "./stack-config.ts";
import {
  readPort,
  readVariable,
  type Environment,
} from "../core/environment.ts";
import { Failure, textOf } from "../core/failure.ts";
import { openHistory, outliveFullDisk } from "../supervisor/history/history.ts";
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
  /** Looks at this host's containers, and heals them; otherwise there is nothing that could be restarted. */
  readonly containers: boolean;
  readonly onNotice: (sentence: string) => void;
  readonly onService: (view: ServiceView, before: ServiceState) => void;
  readonly onCheck: (view: CheckView, before: CheckState) => void;
}

export interface Watcher {
  readonly address: string;
  readonly stop: () => Promise<void>;
}

/** What the names of this host's containers begin with. */
function containerPrefix(env: Environment): string {
  return readVariable("HEARTH_CONTAINER_PREFIX", env) ?? "hearth";
}

/** A supervisor that started nothing: it looks at what its configuration names and at its host's containers, heals, remembers and tells. */
export async function startWatcher(options: WatcherOptions): Promise<Watcher> {
  const { home, env } = options;
  const loaded = loadConfig(configFiles(env), variablesOf(home, env));
  const services = (readVariable("HEARTH_CONTAINERS", env) ?? "").split(" ");
  const config = options.containers
    ? {
        ...loaded,
        config: {
          ...loaded.config,
          checks: withContainerChecks(
            loaded.config.checks,
            services.filter((name) => name !== ""),
          ),
        },
      }
    : loaded;
  const engine = options.containers
    ? openEngine(
        readVariable("DOCKER_HOST", env) ?? "unix:///var/run/docker.sock",
        containerName("socket-proxy", containerPrefix(env)),
      )
    : undefined;
  process.umask(0o077);
  makeHome(home);
  const lock = lockHome(home.lock);
  if (lock === undefined) {
    throw new Failure(
      `another supervisor runs on ${home.root}: stop that one, or choose another place with HEARTH_HOME.`,
    );
  }
  const history = outliveFullDisk(
    openHistory(home.history, Date.now, options.onNotice),
    options.onNotice,
  );
  const runtime =
    engine === undefined
      ? undefined
      : createContainerRuntime({
          engine,
          prefix: containerPrefix(env),
          history,
          onChange: options.onService,
          onTrouble: options.onNotice,
          validate: async (name) => {
            if (name === "gateway") {
              await checkGatewayConfig(env);
            }
          },
        });
  try {
    const supervision = new Supervision({
      home,
      env,
      config,
      history,
      onCheck: options.onCheck,
      onNotice: options.onNotice,
    });
    const console = await openConsole(supervision, {
      host: readVariable("HEARTH_SUPERVISOR_HOST", env) ?? "127.0.0.1",
      port: readPort("HEARTH_SUPERVISOR_PORT", 4080, env),
      onStopAsked: undefined,
    });
    rememberAddress(options, console.address);
    if (runtime !== undefined) {
      await runtime.begin();
      supervision.show(runtime);
    }
    supervision.begin();
    return {
      address: console.address,
      stop: async () => {
        await supervision.rest();
        await console.close();
        rememberAddress(options, null);
        await runtime?.close();
        history.close();
        lock.release();
      },
    };
  } catch (error) {
    await runtime?.close();
    history.close();
    lock.release();
    throw error;
  }
}

/** Commands on this machine find the supervisor by it, and know that it is ours before they send it their token. */
function rememberAddress(
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
