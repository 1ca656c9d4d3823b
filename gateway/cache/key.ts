import { hash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { DAY_MS } from "../../core/duration.ts";
import type { Payers } from "../ledger/payers.ts";
import type { CacheConfig } from "../config/types.ts";

/** Cache directives of a caller, from `Cache-Control` or the body's fields `cache` and `caching`. */
export interface CacheOptions {
  /** false: `no-cache`. */
  readonly read: boolean;
  /** false: `no-store`. */
  readonly store: boolean;
  /** `use-cache`, which `mode: default_off` requires. */
  readonly requested: boolean;
  readonly ttlMs: number | null;
}

export function readCacheOptions(
  body: Readonly<Record<string, unknown>>,
  headers: IncomingHttpHeaders,
): CacheOptions {
  const control = headers["cache-control"] ?? "";
  const options =
    typeof body["cache"] === "object" && body["cache"] !== null
      ? (body["cache"] as Record<string, unknown>)
      : {};
  const off = body["caching"] === false;
  const noStore =
    off || control.includes("no-store") || options["no-store"] === true;
  const noCache = control.includes("no-cache") || options["no-cache"] === true;
  return {
    read: !noCache && !noStore,
    store: !noStore,
    requested: options["use-cache"] === true || body["caching"] === true,
    ttlMs:
      typeof options["ttl"] === "number" && options["ttl"] > 0
        ? Math.min(Math.ceil(options["ttl"] * 1_000), MAX_TTL_MS)
        : null,
  };
}

/** A hundred years: Redis rejects times far beyond any date, and fractions of a millisecond. */
const MAX_TTL_MS = 100 * 366 * DAY_MS;

/** Fields that affect the payer or what the provider keeps, never the answer. */
const NOT_IN_KEY = new Set([
  "model",
  "user",
  "metadata",
  "store",
  "safety_identifier",
]);
const NOT_IN_ITEM_KEY = new Set([...NOT_IN_KEY, "input"]);

/** The inputs that a cached answer depends on. */
export interface CacheInputs {
  readonly callType: string;
  readonly alias: string;
  /** What distinguishes it from the shared alias with all its deployments; "": nothing. */
  readonly variant: string;
  readonly payers: Payers;
  readonly body: Readonly<Record<string, unknown>>;
}

/**
 * The name of a call's answer in the cache: `<namespace>:<SHA-256>` over scope, alias and all that changes the answer.
 * The scope is the team, else the user, else the key: no tenant ever sees another's answer. null: not cached.
 */
export function cacheKeyOf(
  config: CacheConfig,
  inputs: CacheInputs,
  options: CacheOptions,
): string | null {
  if (!isCached(config, inputs.callType, options)) {
    return null;
  }
  return nameOf(config, textOf(config, inputs, NOT_IN_KEY));
}

/** The name of each item of an embeddings call, whatever list contains it; null: not cached. */
export function itemKeysOf(
  config: CacheConfig,
  inputs: CacheInputs,
  options: CacheOptions,
): readonly string[] | null {
  if (!isCached(config, inputs.callType, options)) {
    return null;
  }
  const common = textOf(config, inputs, NOT_IN_ITEM_KEY);
  return itemsOf(inputs.body["input"]).map((item) =>
    nameOf(config, `${common},item:${canonical(item)}`),
  );
}

/** The items of an embeddings call, one vector each, or the prompts of completions: texts, or lists of token numbers. */
export function itemsOf(input: unknown): readonly unknown[] {
  return Array.isArray(input) && typeof input[0] !== "number" ? input : [input];
}

function isCached(
  config: CacheConfig,
  callType: string,
  options: CacheOptions,
): boolean {
  if (
    !config.enabled ||
    !(config.callTypes as readonly string[]).includes(callType)
  ) {
    return false;
  }
  if (config.mode === "default_off" && !options.requested) {
    return false;
  }
  return options.read || options.store;
}

function nameOf({ namespace }: CacheConfig, text: string): string {
  return `${namespace}:${hash("sha256", text)}`;
}

function textOf(
  config: CacheConfig,
  { callType, alias, variant, payers, body }: CacheInputs,
  without: ReadonlySet<string>,
): string {
  const scope = config.scope === "global" ? "global" : tenantOf(payers);
  let text = JSON.stringify([
    scope,
    callType,
    alias,
    ...(variant === "" ? [] : [variant]),
  ]);
  for (const name of Object.keys(body).sort()) {
    if (!without.has(name)) {
      text += `,${JSON.stringify(name)}:${canonical(body[name])}`;
    }
  }
  return text;
}

function tenantOf(payers: Payers): string {
  if (payers.teamId !== null) {
    return `team:${payers.teamId}`;
  }
  if (payers.userId !== null) {
    return `user:${payers.userId}`;
  }
  return `key:${payers.apiKey}`;
}

/** A prompt of this length takes longer to be put into quotes than to be hashed. */
const LONG_TEXT = 512;

/** JSON with sorted object keys; long texts as they are, with their length in front. */
function canonical(value: unknown): string {
  // Half a surrogate pair would be hashed as any other.
  if (
    typeof value === "string" &&
    value.length >= LONG_TEXT &&
    value.isWellFormed()
  ) {
    return `${value.length}:${value}`;
  }
  if (typeof value !== "object" || value === null) {
    return JSON.stringify(value) ?? "null";
  }
  if (Array.isArray(value)) {
    return `[${value.map(canonical).join(",")}]`;
  }
  const fields = value as Readonly<Record<string, unknown>>;
  let text = "";
  for (const name of Object.keys(fields).sort()) {
    text += `${text === "" ? "" : ","}${JSON.stringify(name)}:${canonical(fields[name])}`;
  }
  return `{${text}}`;
}
