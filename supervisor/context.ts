import type { ReplacedAlarms } from "./alerts/alarm.ts";
import type { Watch } from "./checks/watch.ts";
import type { SupervisorConfig } from "./config/schema.ts";
import type { Credentials } from "./credentials.ts";
import type { Environment } from "../core/environment.ts";
import type { History } from "./history/history.ts";
import type { Home } from "./home/home.ts";
import type { JobRunner } from "./jobs/runner.ts";
import type { Runtime } from "./runtimes/runtime.ts";
import type { Attention } from "./status.ts";

/** Shared by all modules of the supervisor. */
export interface Context {
  readonly home: Home;
  readonly env: Environment;
  readonly config: SupervisorConfig;
  readonly history: History;
  readonly alarms: ReplacedAlarms;
  readonly credentials: () => Credentials;
  /** Modules add their jobs when they open. */
  readonly jobs: JobRunner;
  /** Undefined until the services are up, and without a runtime. */
  readonly runtime: () => Runtime | undefined;
  readonly watch: () => Watch | undefined;
  /** What needs a person now. */
  readonly attention: () => readonly Attention[];
  /** Replaces the findings of a source that need a person, but are not alarms. */
  readonly need: (source: string, found: readonly Attention[]) => void;
  /** Vaults and their devices on the status page. */
  readonly showDevices: (known: KnownDevices) => void;
  /** A message for the operator, logged once. */
  readonly onNotice: (sentence: string) => void;
}

/** A module (jobs, alerts, notes …), active from `start` on. */
export interface Module {
  readonly start: () => void;
  /** Looks for what needs a person now: an operator has just changed something. */
  readonly refresh?: () => void;
  /** Ends within 10 s. */
  readonly stop: () => Promise<void>;
}

/** The vaults of the notes store, and the devices that sync them. */
export interface KnownDevices {
  readonly vaults: readonly string[];
  readonly devices: readonly VaultDevice[];
}

/** A device that syncs notes. */
export interface VaultDevice {
  readonly vault: string;
  readonly name: string;
  /** Milliseconds since 1970; null if it has never connected. */
  readonly seenAt: number | null;
  /** Pending changes; null if unknown. */
  readonly behind: number | null;
}
