import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Payers } from "../accounting/payers.ts";
import type { CacheConfig } from "../config/types.ts";

/** What a caller asks of the cache, by `Cache-Control` or the body's `cache` field. */
export interface CacheWishes {
  /** false: `no-cache`. */
  readonly read: boolean;
  /** false: `no-store`. */
  readonly store: boolean;
  /** Asked for by name, which `mode: default_off` wants. */
  readonly asked: boolean;
  readonly ttlMs: number | null;
}

export function readCacheWishes(
  body: Readonly<Record<string, unknown>>,
  headers: IncomingHttpHeaders,
): CacheWishes {
  const control = headers["cache-control"] ?? "";
  const wishes =
    typeof body["cache"] === "object" && body["cache"] !== null
      ? (body["cache"] as Record<string, unknown>)
      : {};
  const noStore = control.includes("no-store") || wishes["no-store"] === true;
  const noCache = control.includes("no-cache") || wishes["no-cache"] === true;
  return {
    read: !noCache && !noStore,
    store: !noStore,
    asked: wishes["use-cache"] === true,
    ttlMs:
      typeof wishes["ttl"] === "number" && wishes["ttl"] > 0
        ? wishes["ttl"] * 1_000
        : null,
  };
}

/** Fields that change who pays or how we work, never the answer. */
const NOT_IN_KEY = new Set([
  "model",
  "user",
  "metadata",
  "cache",
  "tags",
  "timeout",
  "num_retries",
  "fallbacks",
  "store",
  "safety_identifier",
]);

/**
 * The name of a call's answer in the cache: `<namespace>:<SHA-256>` over scope, alias and all that changes the answer.
 * The scope is the team, else the user, else the key: no tenant ever sees another's answer. null: not cached.
 */
export function cacheKeyOf(
  config: CacheConfig,
  callType: string,
  alias: string,
  payers: Payers,
  body: Readonly<Record<string, unknown>>,
  wishes: CacheWishes,
): string | null {
  if (
    !config.enabled ||
    !(config.callTypes as readonly string[]).includes(callType)
  )
    return null;
  if (config.mode === "default_off" && !wishes.asked) return null;
  if (!wishes.read && !wishes.store) return null;
  const hash = createHash("sha256");
  hash.update(
    JSON.stringify([
      config.scope === "global" ? "global" : tenantOf(payers),
      callType,
      alias,
    ]),
  );
  for (const name of Object.keys(body).sort())
    if (!NOT_IN_KEY.has(name))
      hash.update(`,${JSON.stringify(name)}:${canonical(body[name])}`);
  return `${config.namespace}:${hash.digest("hex")}`;
}

function tenantOf(payers: Payers): string {
  if (payers.teamId !== null) return `team:${payers.teamId}`;
  if (payers.userId !== null) return `user:${payers.userId}`;
  return `key:${payers.apiKey}`;
}

/** JSON with sorted object keys. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null)
    return JSON.stringify(value) ?? "null";
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([name, inner]) => `${JSON.stringify(name)}:${canonical(inner)}`).join(",")}}`;
}
