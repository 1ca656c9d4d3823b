import type { CheckState } from "./checks/state.ts";
import { startWatch, type CheckView, type Watch } from "./checks/watch.ts";
import { loadConfig } from "./config/load.ts";
import { makeHome, type Home } from "./embedded/home.ts";
import { lockHome } from "./embedded/lock.ts";
import { configFiles } from "./embedded/stack-config.ts";
import { readPort, readVariable, type Environment } from "./environment.ts";
import { Failure, textOf } from "./failure.ts";
import { openHistory } from "./history.ts";
import { buildApi, listen } from "./http/server.ts";
import { findAttention, judge, type Status } from "./status.ts";

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
  const { config, leftOut } = loadConfig(configFiles(env), (name) =>
    readVariable(name, env),
  );
  process.umask(0o077);
  makeHome(home);
  const lock = lockHome(home.lock);
  if (lock === undefined)
    throw new Failure(
      `another supervisor runs on ${home.root}: stop that one, or choose another place with HEARTH_HOME.`,
    );
  leftOut.forEach(options.onNotice);
  const history = openHistory(home.history);
  const begun = Date.now();
  const host = readVariable("HEARTH_SUPERVISOR_HOST", env) ?? "127.0.0.1";
  let address = "";
  let watch: Watch | undefined = undefined;

  function status(): Status {
    const checks = watch?.list() ?? [];
    const attention = findAttention([], checks);
    return {
      ...judge("running", [], attention),
      phase: "running",
      at: Date.now(),
      supervisor: {
        pid: process.pid,
        address,
        since: begun,
        home: home.root,
        memoryBytes: process.memoryUsage.rss(),
      },
      services: [],
      checks,
      attention,
      notices: leftOut,
    };
  }

  const api = buildApi({
    status,
    runtime: () => undefined,
    watch: () => watch,
    history,
    stop: undefined,
    operatorPassword: readVariable("HEARTH_OPERATOR_PASSWORD", env),
  });
  try {
    address = await listen(
      api,
      host,
      readPort("HEARTH_SUPERVISOR_PORT", 4080, env),
    );
  } catch (error) {
    history.close();
    lock.release();
    throw error;
  }
  watch = startWatch({
    checks: config.checks,
    runtime: undefined,
    history,
    onChange: options.onCheck,
    onError: (error) =>
      options.onNotice(`a check failed to run: ${textOf(error)}`),
  });
  return {
    address,
    stop: async () => {
      watch?.stop();
      await api.close();
      history.close();
      lock.release();
    },
  };
}
