import { HOUR_MS } from "../core/duration.ts";
import type { StorageFailure } from "./refusal.ts";

/** A database that had trouble. */
export interface Incident {
  readonly database: string;
  /** In ISO 8601. */
  readonly at: string;
  /** Undefined if the database did not respond. */
  readonly reason: StorageFailure | undefined;
}

/** The latest incident of each database and reason within the last hour, since this process started. */
export interface LatestIncidents {
  readonly add: (database: string, reason?: StorageFailure) => void;
  readonly latest: () => readonly Incident[];
  /** A removed database has none, even if another one is created under its name. */
  readonly forget: (database: string) => void;
}

export function openLatestIncidents(now = Date.now): LatestIncidents {
  const MAX = 20;
  let incidents: readonly Incident[] = [];
  const forget = (database: string): void => {
    incidents = incidents.filter((each) => each.database !== database);
  };
  return {
    add: (database, reason) => {
      incidents = incidents.filter(
        (each) => each.database !== database || each.reason !== reason,
      );
      const at = new Date(now()).toISOString();
      incidents = [...incidents, { database, at, reason }].slice(-MAX);
    },
    forget,
    latest: () =>
      incidents.filter(({ at }) => Date.parse(at) > now() - HOUR_MS),
  };
}
