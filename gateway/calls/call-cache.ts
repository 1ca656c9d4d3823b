import type { FastifyRequest } from "fastify";
import {
  cacheKeyOf,
  itemKeysOf,
  readCacheOptions,
  type CacheInputs,
  type CacheOptions,
} from "../cache/key.ts";
import type { Gateway } from "../gateway.ts";
import type { CallGuards } from "../guardrails/call-guards.ts";
import type { ModelGroup } from "../routing/catalog.ts";
import type { CallBody } from "./body.ts";
import type { RequestedFallbacks } from "./fallbacks.ts";
import type { CallOptions } from "./options.ts";

const NO_CACHE: CacheOptions = {
  read: false,
  store: false,
  requested: false,
  ttlMs: null,
};

interface Own {
  /** The caller's own key or address. */
  readonly ownAccess: boolean;
  readonly fallbacks: RequestedFallbacks;
}

/** What a caller invents, or what its own account answers, is not an answer for others. */
export function cacheOptionsOf(
  body: CallBody,
  headers: FastifyRequest["headers"],
  { mock }: CallOptions,
  { ownAccess, fallbacks }: Own,
): CacheOptions {
  if (ownAccess || mock.response !== null || mock.failure !== null) {
    return NO_CACHE;
  }
  const options = readCacheOptions(body, headers);
  return fallbacks.replacements.size === 0
    ? options
    : { ...options, store: false };
}

/** Answers that guardrails checked are cached for calls with the same guardrails. */
export function variantOf(
  group: ModelGroup,
  guards: CallGuards | null,
): ModelGroup {
  return guards === null
    ? group
    : { ...group, variant: `${group.variant} ${guards.fingerprint}` };
}

export interface CacheKeys {
  /** null: this call does not use the cache. */
  readonly cacheKey: string | null;
  /** Embeddings are cached item by item: the key of each; null: not an embeddings call, or not cached. */
  readonly itemKeys: readonly string[] | null;
}

/** The names of a call's answer, and of each item of an embeddings call, in the cache. */
export function cacheKeysOf(
  { config }: Pick<Gateway, "config">,
  inputs: CacheInputs,
  cache: CacheOptions,
): CacheKeys {
  const itemKeys =
    inputs.callType === "aembedding"
      ? itemKeysOf(config.cache, inputs, cache)
      : null;
  return {
    itemKeys,
    cacheKey:
      itemKeys?.length === 1
        ? (itemKeys[0] ?? null)
        : cacheKeyOf(config.cache, inputs, cache),
  };
}
