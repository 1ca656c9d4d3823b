/** What runs a service: how the supervisor sees and moves it, whatever it runs in. */
export type Runtime = {
  readonly list: () => readonly ServiceView[];
  readonly inspect: (name: string) => ServiceView | undefined;
  /** Stops and starts one service; resolves when it is up again. An operator's word also renews its budgets. */
  readonly restart: (
    name: string,
    reason: string,
    by: "operator" | "supervisor",
  ) => Promise<void>;
  /** The last `lines` lines of its output. */
  readonly logs: (name: string, lines: number) => readonly string[];
  readonly stats: (name: string) => ServiceStats | undefined;
};

/** A runtime that also begins and ends what it runs (the embedded stack). */
export type StartableRuntime = Runtime & {
  readonly start: () => Promise<void>;
  readonly stop: (reason: string) => Promise<void>;
};

/**
 * waiting: for what it needs; starting: runs, not yet healthy; running: was healthy after its start;
 * backing-off: ended, will be started again; gave-up: ended too often, needs a person; stopping, stopped: as told.
 */
export type ServiceState =
  | "waiting"
  | "starting"
  | "running"
  | "backing-off"
  | "gave-up"
  | "stopping"
  | "stopped";

export type ServiceView = {
  readonly name: string;
  readonly state: ServiceState;
  /** Milliseconds since 1970. */
  readonly since: number;
  readonly pid: number | null;
  readonly address: string;
  readonly port: number;
  /** Runs since before this supervisor. */
  readonly adopted: boolean;
  /** Milliseconds from start to healthy, of the last start. */
  readonly tookMs: number | null;
  /** Times it was started again since `hearth up`. */
  readonly restarts: number;
  /** Why it is in this state; null when there is nothing to say. */
  readonly reason: string | null;
};

export type ServiceStats = {
  readonly memoryBytes: number;
  readonly cpuSeconds: number;
};
