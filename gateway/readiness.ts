import type { Gateway } from "./gateway.ts";

/** Whether this process can serve calls, as `/health/readiness` shows it. */
export interface Readiness {
  readonly servable: boolean;
  readonly status: "connected" | "stopping" | "starting";
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
  const ready = database.ready();
  const stopping = gateway.stopping();
  const { full, pendingRecords } = journal.state();
  return {
    servable: ready && !stopping && !full,
    status: stopping ? "stopping" : ready ? "connected" : "starting",
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
  const some = (status: Readiness["status"]) =>
    known.some((one) => one.status === status);
  const isWhole = known.length === workers.length;
  return {
    ...own,
    servable: isWhole && known.every(({ servable }) => servable),
    status: some("stopping")
      ? "stopping"
      : some("starting") || !isWhole
        ? "starting"
        : "connected",
    connected: known.every(({ connected }) => connected),
    writable: known.every(({ writable }) => writable),
    limits: known.some(({ limits }) => limits === "redis_away")
      ? "redis_away"
      : own.limits,
    pending: known.reduce((sum, { pending }) => sum + pending, 0),
  };
}
