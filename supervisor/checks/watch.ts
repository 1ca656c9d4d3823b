import type { ReplacedAlarms } from "../alerts/alarm.ts";
import type { SupervisorConfig } from "../config/schema.ts";
import type { History } from "../history/history.ts";
import type { Runtime } from "../runtimes/runtime.ts";
import type { PingKind } from "./kinds/probe.ts";
import type { Maintenance } from "./maintenance.ts";
import type { CheckState } from "./state.ts";
import type { CheckView } from "./watched.ts";

/** The running checks. Methods that name a check return undefined if there is no such check. */
export interface Watch {
  readonly list: () => readonly CheckView[];
  /** Probes now; the result counts. */
  readonly probeNow: (name: string) => Promise<CheckView | undefined>;
  /** Resets the restart budget of a service, after an operator has taken action. */
  readonly resetHealing: (service: string) => void;
  /** Stops probing until the check is resumed, also across restarts of the supervisor. */
  readonly pause: (name: string, why: string) => CheckView | undefined;
  readonly resume: (name: string) => CheckView | undefined;
  readonly maintenance: Pick<Maintenance, "open" | "start" | "end">;
  /** Records a ping of a heartbeat; undefined, too, if the check is of another kind. */
  readonly ping: (
    name: string,
    kind: PingKind,
    text: string | null,
  ) => Promise<CheckView | undefined>;
  readonly stop: () => void;
}

export interface WatchOptions {
  readonly config: Pick<
    SupervisorConfig,
    "checks" | "maintenance" | "offline" | "jobs"
  >;
  readonly runtime: Runtime | undefined;
  readonly history: History;
  readonly alarms: ReplacedAlarms;
  readonly onChange: (view: CheckView, before: CheckState) => void;
  readonly onError: (error: unknown) => void;
  /** Milliseconds since 1970; the machine's clock unless a test passes its own. */
  readonly now?: () => number;
  /** Milliseconds that the machine was awake. */
  readonly awake?: () => number;
}
