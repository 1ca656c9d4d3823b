import type { Gateway } from "./gateway.ts";

/** Of several that hold, the first is shown. */
export const STATUSES = [
  "stopping",
  "starting",
  "journal_full",
  "connected",
] as const;

/** Whether this process can serve calls, as `/health/readiness` shows it. */
export interface Readiness {
  /** Calls are served while it is `connected`. */
  readonly status: (typeof STATUSES)[number];
  readonly connected: boolean;
  /** Whether the database takes the journal's rows. */
  readonly writable: boolean;
  readonly cache: "redis" | "memory" | null;
  /** `redis_away`: limits are kept in process, at this instance's share. */
  readonly limits: "redis" | "memory" | "redis_away";
  /** Calls in its journal that are not in the ledger. */
  readonly pending: number;
}

export function readinessOf(gateway: Gateway): Readiness {
  const { database, journal, ledger, cache, config, limits } = gateway;
  const { full, pendingRecords } = journal.state();
  return {
    status: gateway.stopping()
      ? "stopping"
      : !database.ready()
        ? "starting"
        : full
          ? "journal_full"
          : "connected",
    connected: database.connected(),
    writable: ledger.writable(),
    cache: config.cache.enabled ? cache.kind : null,
    limits: limits.mode(),
    pending: pendingRecords,
  };
}

/** Of workers that serve together: ready when all of them are. null: a worker that is being restarted. */
export function readinessOfAll(
  own: Readiness,
  workers: readonly (Readiness | null)[],
): Readiness {
  const known = workers.filter((one) => one !== null);
  const statuses = workers.map((one) => one?.status ?? "starting");
  return {
    ...own,
    status: STATUSES.find((status) => statuses.includes(status)) ?? own.status,
    connected: known.every(({ connected }) => connected),
    writable: known.every(({ writable }) => writable),
    limits: known.some(({ limits }) => limits === "redis_away")
      ? "redis_away"
      : own.limits,
    pending: known.reduce((sum, { pending }) => sum + pending, 0),
  };
}
