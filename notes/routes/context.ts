import type { Databases } from "../databases.ts";
import type { Log } from "../log.ts";
import type { LatestIncidents } from "../latest-incidents.ts";
import type { Settings } from "../settings.ts";

/** Dependencies of the routes. */
export interface ServerContext {
  readonly settings: Settings;
  readonly databases: Databases;
  /** Databases whose thread hung and was terminated. */
  readonly restarts: LatestIncidents;
  /** Databases that could not be read or written. */
  readonly storageFailures: LatestIncidents;
  readonly log: Log;
  /** Directory for long request bodies. */
  readonly spoolDirectory: string;
  /** Aborted when the server stops: feeds end then. */
  readonly stopping: AbortSignal;
}
