import type { Databases } from "../databases.ts";
import type { Log } from "../log.ts";
import type { Restarts } from "../restarts.ts";
import type { Settings } from "../settings.ts";

/** Dependencies of the routes. */
export interface ServerContext {
  readonly settings: Settings;
  readonly databases: Databases;
  readonly restarts: Restarts;
  readonly log: Log;
  /** Directory for long request bodies. */
  readonly spoolDirectory: string;
  /** Aborted when the server stops: feeds end then. */
  readonly stopping: AbortSignal;
}
