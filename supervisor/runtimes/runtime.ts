/** Observes and restarts services, as processes or containers. */
export interface Runtime {
  /** The latest state, at most a few seconds old. */
  readonly list: () => readonly ServiceView[];
  readonly inspect: (name: string) => ServiceView | undefined;
  /** Probes now; undefined if there is no such service. Throws a Failure if probing is impossible. */
  readonly probe: (name: string) => Promise<ServiceView | undefined>;
  /** Stops and starts a service; resolves when it is up again. By an operator, it also resets the restart budget. */
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

/** A runtime that also starts and stops its services (the embedded stack). */
export type StartableRuntime = Runtime & {
  readonly start: () => Promise<void>;
  readonly stop: (reason: string) => Promise<void>;
};

/**
 * waiting: for services that it needs; starting: not healthy yet; running: was healthy after its start; backing-off: ended,
 * will be restarted; gave-up: ended too often, needs a person; stopping, stopped: on demand. Only containers: ended: not
 * running and not restarted automatically; absent: missing for longer than a deployment takes to replace it (until then it is
 * waiting); unknown: the engine does not answer.
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
  /** Started by the previous supervisor. */
  readonly adopted: boolean;
  /** Milliseconds from start to healthy, of the last start. */
  readonly tookMs: number | null;
  /** Automatic restarts since `hearth up`. */
  readonly restarts: number;
  /** Why it is in this state, if there is a reason. */
  readonly reason: string | null;
  /** Containers only. */
  readonly container?: ContainerFacts;
}

/** Docker's state of a container. Times in milliseconds since 1970. */
export interface ContainerFacts {
  readonly id: string;
  readonly image: string;
  /** Docker's status: created, running, paused, restarting, removing, exited, dead. */
  readonly status: string;
  /** none: it has no health check. */
  readonly health: "none" | "starting" | "healthy" | "unhealthy";
  /** Output of its last health check; may be empty. */
  readonly healthOutput: string;
  readonly startedAt: number | null;
  /** Of the last end; null during the first run. */
  readonly exitCode: number | null;
  readonly oomKilled: boolean;
}

export interface ServiceStats {
  readonly memoryBytes: number;
  /** The memory limit, if any. */
  readonly memoryLimitBytes?: number;
  readonly cpuSeconds: number;
}
