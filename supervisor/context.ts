import type { Alarms } from "./alerts/alarm.ts";
import type { Watch } from "./checks/watch.ts";
import type { SupervisorConfig } from "./config/schema.ts";
import type { Credentials } from "./credentials.ts";
import type { Environment } from "../core/environment.ts";
import type { History } from "./history/history.ts";
import type { Home } from "./home/home.ts";
import type { JobRunner } from "./jobs/runner.ts";
import type { Runtime } from "./runtimes/runtime.ts";
import type { Attention } from "./status.ts";

/** What every module of the supervisor works with. */
export interface Context {
  readonly home: Home;
  readonly env: Environment;
  readonly config: SupervisorConfig;
  readonly history: History;
  readonly alarms: Alarms;
  readonly credentials: () => Credentials;
  /** Modules add their jobs when they open. */
  readonly jobs: JobRunner;
  /** Undefined until the services are up, and where nothing runs services. */
  readonly runtime: () => Runtime | undefined;
  readonly watch: () => Watch | undefined;
  /** What needs a person now. */
  readonly attention: () => readonly Attention[];
  /** What needs a person and is no alarm, in place of what the same source said before. */
  readonly need: (source: string, found: readonly Attention[]) => void;
  /** What the status page says of the vaults' devices. */
  readonly showDevices: (devices: readonly VaultDevice[]) => void;
  /** Something that an operator should read once, now. */
  readonly onNotice: (sentence: string) => void;
}

/** One module (jobs, alerts, notes …): opened at once, works from `begin` on. */
export interface Module {
  readonly begin: () => void;
  /** Ends within 10 s. */
  readonly stop: () => Promise<void>;
}

/** A device that notes go to. */
export interface VaultDevice {
  readonly vault: string;
  readonly name: string;
  /** Milliseconds since 1970; null when it was never seen. */
  readonly seenAt: number | null;
  /** Changes that it has not fetched; null when that is not known. */
  readonly behind: number | null;
}
