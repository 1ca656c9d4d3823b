/** What runs a service: how the supervisor sees and moves it, whatever it runs in. */
export interface Runtime {
  /** What was seen last; at most a few seconds old. */
  readonly list: () => readonly ServiceView[];
  readonly inspect: (name: string) => ServiceView | undefined;
  /** Looks anew; throws a Failure when it cannot look, undefined when there is no such service. */
  readonly look: (name: string) => Promise<ServiceView | undefined>;
  /** Stops and starts one service; resolves when it is up again. An operator's word also renews its budgets. */
  readonly restart: (
    name: string,
    reason: string,
    by: "operator" | "supervisor",
  ) => Promise<void>;
  /** The last `lines` lines of its output. */
  readonly logs: (
    name: string,
    lines: number,
  ) => readonly string[] | Promise<readonly string[]>;
  readonly stats: (name: string) => ServiceStats | undefined;
}

/** A runtime that also begins and ends what it runs (the embedded stack). */
export type StartableRuntime = Runtime & {
  readonly start: () => Promise<void>;
  readonly stop: (reason: string) => Promise<void>;
};

/**
 * waiting: for what it needs; starting: runs, not yet healthy; running: was healthy after its start;
 * backing-off: ended, will be started again; gave-up: ended too often, needs a person; stopping, stopped: as told.
 * Of containers only: ended: does not run, and nothing starts it again by itself; absent: has been away for longer than a
 * deployment takes to replace it (until then it is waiting); unknown: the engine does not answer.
 */
export type ServiceState =
  | "waiting"
  | "starting"
  | "running"
  | "backing-off"
  | "gave-up"
  | "stopping"
  | "stopped"
  | "ended"
  | "absent"
  | "unknown";

export interface ServiceView {
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
  /** Only of a container. */
  readonly container?: ContainerFacts;
}

/** What Docker says of a container. Times in milliseconds since 1970. */
export interface ContainerFacts {
  readonly id: string;
  readonly image: string;
  /** Docker's word: created, running, paused, restarting, removing, exited, dead. */
  readonly status: string;
  /** none: it has no health check. */
  readonly health: "none" | "starting" | "healthy" | "unhealthy";
  /** What its last health check wrote; empty when there is nothing. */
  readonly healthOutput: string;
  readonly startedAt: number | null;
  /** Of the last end; null while it runs for the first time. */
  readonly exitCode: number | null;
  readonly oomKilled: boolean;
}

export interface ServiceStats {
  readonly memoryBytes: number;
  /** What it may use at most; absent when nothing limits it. */
  readonly memoryLimitBytes?: number;
  readonly cpuSeconds: number;
}
