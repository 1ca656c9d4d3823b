/** Observes services, as processes, containers or pods, and restarts processes and containers. */
export interface Runtime {
  /** The latest state, at most a few seconds old. */
  readonly list: () => readonly ServiceView[];
  readonly inspect: (name: string) => ServiceView | undefined;
  /** Probes now; undefined if there is no such service. Throws a Failure if probing is impossible. */
  readonly probe: (name: string) => Promise<ServiceView | undefined>;
  /**
   * Stops and starts a service; resolves when it is up again. By an operator, it also resets the restart budget. Throws a
   * Failure if that is not possible; pods are restarted by Kubernetes only.
   */
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
 * will be restarted; gave-up: ended too often, needs a person; stopping, stopped: on demand. Only containers and pods: ended:
 * not running and not restarted automatically; unknown: the engine does not answer. Only containers: absent: missing for longer
 * than a deployment takes to replace it (until then it is waiting).
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
  /** Pods only. */
  readonly pod?: PodFacts;
  /** Shows more about the service; undefined if `hearth logs` does. */
  readonly command?: string;
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

/** Kubernetes' state of a pod. Times in milliseconds since 1970. */
export interface PodFacts {
  readonly uid: string;
  /** Null until it is scheduled. */
  readonly node: string | null;
  /** The service that it runs, such as gateway (label app.kubernetes.io/component). */
  readonly component: string | null;
  readonly containers: readonly PodContainer[];
  /** Null while it is ready. */
  readonly notReadySince: number | null;
  /** It does not start until its configuration is changed, such as the name of its image. */
  readonly isStuck: boolean;
  /** The latest end of a container that was restarted. */
  readonly lastEnd: PodEnd | null;
  /** Null if it has no controller that would replace it. */
  readonly restartCommand: string | null;
}

interface PodContainer {
  readonly name: string;
  readonly image: string;
  readonly isReady: boolean;
  readonly restarts: number;
}

export interface PodEnd {
  readonly at: number;
  /** Such as "killed: out of memory". */
  readonly text: string;
  readonly oomKilled: boolean;
}

export interface ServiceStats {
  readonly memoryBytes: number;
  /** The memory limit, if any. */
  readonly memoryLimitBytes?: number;
  readonly cpuSeconds: number;
}
