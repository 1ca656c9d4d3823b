import type { Databases } from "../databases.ts";
import type { Log } from "../log.ts";
import type { Restarts } from "../restarts.ts";
import type { Settings } from "../settings.ts";

/** What every route can use. */
export interface ServerContext {
  readonly settings: Settings;
  readonly databases: Databases;
  readonly restarts: Restarts;
  readonly log: Log;
  /** Long request bodies wait here. */
  readonly spoolDirectory: string;
  /** Aborted when the server is told to stop: feeds end then. */
  readonly stopping: AbortSignal;
}
