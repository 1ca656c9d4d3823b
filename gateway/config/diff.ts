import { isRecord } from "../../core/json.ts";
import { sameDatabase } from "./database-url.ts";
import type { Secret } from "./secret.ts";
import type { Deployment, GatewayConfig } from "./types.ts";

/** What a reload changes. Names only: values may be secrets. */
export interface ConfigDiff {
  /** `alias (id)` of deployments. */
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly string[];
  /** Settings by their path, such as `router.numRetries`. */
  readonly settings: readonly string[];
  /** Those of them that take effect only after a restart. */
  readonly needRestart: readonly string[];
}

/** Bound once at the start: the listener, connections, open files. */
const BOUND_AT_START = [
  "database",
  "redis",
  "cache.kind",
  "cache.ttlMs",
  "cache.namespace",
  "journal",
  "tracing",
  "callWebhook",
  "timeouts.connectMs",
  "timeouts.firstByteMs",
  "timeouts.idleMs",
  "server.host",
  "server.port",
  "server.workers",
  "server.bodyLimitBytes",
  "server.bodiesLimitBytes",
  "server.trustedProxies",
  "server.corsOrigins",
  // Sums by day and window would change their meaning under way (live-config.ts).
  "general.timezone",
  "general.budgetDuration",
  "general.keyCacheMs",
  "general.failClosed",
  "general.storeModelInDb",
  "general.pricesFile",
  "general.metricsLabelValues",
  "litellmMetrics",
];

/** Compares two configurations, the running one first. */
export function diffConfig(
  before: GatewayConfig,
  after: GatewayConfig,
): ConfigDiff {
  const old = byId(before.models);
  const now = byId(after.models);
  const settings = changedPaths(
    withoutModels(before),
    withoutModels(after),
    "",
  );
  return {
    added: [...now.values()].filter((one) => !old.has(one.id)).map(shownName),
    removed: [...old.values()].filter((one) => !now.has(one.id)).map(shownName),
    changed: [...now.values()]
      .filter((one) => {
        const previous = old.get(one.id);
        return (
          previous !== undefined && changedPaths(previous, one, "").length > 0
        );
      })
      .map(shownName),
    settings,
    needRestart: settings.filter(
      (path) =>
        BOUND_AT_START.some(
          (bound) => path === bound || path.startsWith(`${bound}.`),
        ) && !isFollowed(path, before, after),
    ),
  };
}

/** Another login at the same database is followed: passwords are rotated without a restart. */
function isFollowed(
  path: string,
  { database: before }: GatewayConfig,
  { database: after }: GatewayConfig,
): boolean {
  switch (path) {
    case "database.url":
      return sameDatabase(before.url.reveal(), after.url.reveal());
    case "database.directUrl":
      return sameDatabase(
        before.directUrl?.reveal() ?? "",
        after.directUrl?.reveal() ?? "",
      );
    default:
      return false;
  }
}

function byId(models: readonly Deployment[]): ReadonlyMap<string, Deployment> {
  return new Map(models.map((model) => [model.id, model]));
}

function shownName({ alias, id }: Deployment): string {
  return `${alias} (${id})`;
}

function withoutModels(config: GatewayConfig): object {
  return { ...config, models: null, files: null };
}

function changedPaths(
  before: unknown,
  after: unknown,
  path: string,
): readonly string[] {
  if (isSecret(before) && isSecret(after)) {
    return before.reveal() === after.reveal() ? [] : [path];
  }
  if (!isRecord(before) || !isRecord(after)) {
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [path];
  }
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap(
    (key) =>
      changedPaths(
        before[key],
        after[key],
        path === "" ? key : `${path}.${key}`,
      ),
  );
}

function isSecret(value: unknown): value is Secret {
  return (
    isRecord(value) && typeof (value as Partial<Secret>).reveal === "function"
  );
}
