import type { CheckState } from "./checks/state.ts";
import type { CheckView } from "./checks/watch.ts";
import { loadConfig } from "./config/load.ts";
import { makeHome, type Home } from "./embedded/home.ts";
import { lockHome } from "./embedded/lock.ts";
import { configFiles } from "./embedded/stack-config.ts";
import { readPort, readVariable, type Environment } from "./environment.ts";
import { Failure } from "./failure.ts";
import { openHistory, outliveFullDisk } from "./history.ts";
import { openSupervision } from "./supervision.ts";

export type WatcherOptions = {
  readonly home: Home;
  readonly env: Environment;
  readonly onNotice: (sentence: string) => void;
  readonly onCheck: (view: CheckView, before: CheckState) => void;
};

export type Watcher = {
  readonly address: string;
  readonly stop: () => Promise<void>;
};

/** A supervisor that started nothing: it looks at what its configuration names, remembers and tells. */
export async function startWatcher(options: WatcherOptions): Promise<Watcher> {
  const { home, env } = options;
  const config = loadConfig(configFiles(env), (name) =>
    readVariable(name, env),
  );
  process.umask(0o077);
  makeHome(home);
  const lock = lockHome(home.lock);
  if (lock === undefined)
    throw new Failure(
      `another supervisor runs on ${home.root}: stop that one, or choose another place with HEARTH_HOME.`,
    );
  const history = outliveFullDisk(openHistory(home.history), options.onNotice);
  try {
    const supervision = await openSupervision({
      home,
      env,
      config,
      history,
      host: readVariable("HEARTH_SUPERVISOR_HOST", env) ?? "127.0.0.1",
      port: readPort("HEARTH_SUPERVISOR_PORT", 4080, env),
      operatorPassword: readVariable("HEARTH_OPERATOR_PASSWORD", env),
      onStopAsked: undefined,
      onCheck: options.onCheck,
      onNotice: options.onNotice,
    });
    supervision.begin();
    return {
      address: supervision.address,
      stop: async () => {
        await supervision.rest();
        await supervision.close();
        history.close();
        lock.release();
      },
    };
  } catch (error) {
    history.close();
    lock.release();
    throw error;
  }
}
