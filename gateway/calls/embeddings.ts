import type { FastifyReply } from "fastify";
import type { Outcome } from "../ledger/records.ts";
import { inputOnly, type Usage } from "../tokens/reported-usage.ts";
import {
  decodeAnswer,
  encodeAnswer,
  type CachedAnswer,
} from "../cache/entry.ts";
import { itemsOf } from "../cache/key.ts";
import type { Gateway } from "../gateway.ts";
import { CallError } from "../http/errors.ts";
import {
  readEmbeddings,
  writeEmbeddings,
} from "../providers/embedding-vectors.ts";
import type { Admitted } from "./admit.ts";
import { mayCache, sendCached, sendWhole } from "./answer.ts";
import { tokenizedModel, type Call } from "./call.ts";
import { guardAnswer } from "./guard-answer.ts";
import type { Upstream } from "./provider.ts";
import { recordAnswer } from "./record-answer.ts";
import type { RecordPorts } from "./record.ts";
import { sum } from "../../core/sum.ts";

/** One cached item of an embeddings call. */
interface CachedVector {
  readonly vector: string;
  /** The provider's name for it. */
  readonly model: string;
  readonly entry: CachedAnswer;
}

/** The cached items of a call, in their order; null for those that are not cached. */
type CachedItems = readonly (CachedVector | null)[];

/** Reads the cached items of a list; a single item is looked up together with the limits. */
export async function readCached(
  gateway: Pick<Gateway, "cache">,
  call: Call,
): Promise<CachedItems> {
  const { itemKeys } = call;
  if (itemKeys === null || itemKeys.length < 2 || !call.cache.read) {
    return [];
  }
  const entries = await gateway.cache.readMany(itemKeys);
  return entries.map((bytes) => (bytes === null ? null : decodeVector(bytes)));
}

/** A call reduced to the items that are not cached, each once. */
export function withoutCached(
  gateway: Pick<Gateway, "tokens">,
  call: Call,
  kept: CachedItems,
): Call {
  const items = itemsOf(call.body["input"]);
  const missing = missingKeys(call, kept);
  if (missing.size === 0 || missing.size === items.length) {
    return call;
  }
  const body = {
    ...call.body,
    input: [...missing.values()].map((at) => items[at]),
  };
  const inputTokens = call.kind.countInput(
    gateway,
    body,
    tokenizedModel(call.group),
  );
  return { ...call, body, inputTokens, whole: call };
}

export function areAllCached(kept: CachedItems): boolean {
  return kept.length > 0 && kept.every((item) => item !== null);
}

/** Sends the cached vectors if all items are cached; null: a provider must be called. */
export async function embeddingsFromCache(
  gateway: RecordPorts & Pick<Gateway, "cache">,
  call: Call,
  admitted: Admitted,
  kept: CachedItems,
  reply: FastifyReply,
): Promise<FastifyReply | null> {
  const single =
    admitted.cached === null ? null : decodeVector(admitted.cached);
  const all = single === null ? kept : [single];
  const found = all.filter((item) => item !== null);
  const [first] = found;
  if (first === undefined || found.length < (call.itemKeys?.length ?? 1)) {
    return null;
  }
  const sum = (of: (item: CachedVector) => number) =>
    found.reduce((total, item) => total + of(item), 0);
  const tokens = sum(({ entry }) => entry.usage.inputTokens);
  return sendCached(
    gateway,
    call,
    admitted,
    {
      ...first.entry,
      usage: inputOnly(tokens),
      cost: sum(({ entry }) => entry.cost),
      body: writeEmbeddings(
        found.map(({ vector }) => vector),
        first.model,
        tokens,
      ),
    },
    reply,
  );
}

/** Records and settles the provider's answer, caches its vectors, and sends them merged with the cached ones. */
export async function sendEmbeddings(
  gateway: Gateway,
  reduced: Call,
  admitted: Admitted,
  upstream: Extract<Upstream, { kind: "whole" }>,
  kept: CachedItems,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const fellBack = upstream.fallbacks > 0;
  const call = reduced.whole ?? reduced;
  const answered = upstream.translation.answer(upstream.body);
  const body = await guardAnswer(gateway, reduced, upstream, answered);
  const { facts } = answered;
  const { usage, outcome } = await recordAnswer(
    gateway,
    fellBack ? call : reduced,
    upstream,
    facts,
    {
      metadata:
        reduced.whole === null || fellBack
          ? null
          : { cached_items: kept.filter((item) => item !== null).length },
      // Vectors are long and not readable.
      response: () => null,
    },
  );
  // Vectors of another model are not comparable: they are neither cached nor merged with cached ones.
  const answer = fellBack
    ? body
    : completed(gateway, reduced, { body, usage, outcome, kept, upstream });
  if (call.cacheKey !== null && mayCache(call)) {
    gateway.flights.land(call.cacheKey, {
      contentType: upstream.contentType,
      usage,
      cost: outcome.spend,
      responseId: facts.responseId,
      body: answer,
    });
  }
  return sendWhole(gateway, call, admitted, reply, {
    upstream,
    outcome,
    body: answer,
  });
}

interface Answered {
  readonly body: Buffer;
  readonly usage: Usage;
  readonly outcome: Outcome;
  readonly kept: CachedItems;
  readonly upstream: Upstream;
}

function completed(
  gateway: Pick<Gateway, "cache">,
  reduced: Call,
  { body, usage, outcome, kept, upstream }: Answered,
): Buffer {
  const call = reduced.whole ?? reduced;
  if (call.itemKeys === null) {
    return body;
  }
  const answer = readEmbeddings(body);
  const missing = missingKeys(call, kept);
  // The original call contains repeated items as often as they were sent.
  const places = reduced.whole === null ? call.itemKeys : [...missing.keys()];
  const vectors = answer?.vectors ?? null;
  if (answer === null || vectors?.length !== places.length) {
    if (reduced.whole === null) {
      return body;
    }
    throw new CallError(
      "upstream_error",
      `${call.group.alias}: the provider did not return one vector per item. Try again.`,
    );
  }
  const model =
    typeof answer.rest["model"] === "string"
      ? answer.rest["model"]
      : upstream.deployment.model;
  const found = new Map(places.map((key, at) => [key, vectors[at] ?? ""]));
  if (mayCache(call)) {
    cacheVectors(gateway, reduced, { places, vectors, model, usage, outcome });
  }
  if (reduced.whole === null) {
    return body;
  }
  return writeEmbeddings(
    call.itemKeys.map((key, at) => kept[at]?.vector ?? found.get(key) ?? ""),
    model,
    kept.reduce(
      (tokens, item) => tokens + (item?.entry.usage.inputTokens ?? 0),
      usage.inputTokens,
    ),
  );
}

/** Each with its share of the call's usage and cost, by length: what a hit saves. */
function cacheVectors(
  gateway: Pick<Gateway, "cache">,
  reduced: Call,
  answer: {
    readonly places: readonly string[];
    readonly vectors: readonly string[];
    readonly model: string;
    readonly usage: Usage;
    readonly outcome: Outcome;
  },
): void {
  const { places, vectors, model, usage, outcome } = answer;
  const lengths = itemsOf(reduced.body["input"]).map((item) =>
    Math.max(1, (item as string | readonly number[]).length),
  );
  const all = sum(lengths);
  for (const [at, key] of places.entries()) {
    const share = (lengths[at] ?? 0) / all;
    gateway.cache.store(
      key,
      encodeAnswer({
        contentType: "application/json",
        usage: inputOnly(Math.round(usage.inputTokens * share)),
        cost: outcome.spend * share,
        responseId: null,
        body: Buffer.from(`${JSON.stringify(model)}\n${vectors[at] ?? ""}`),
      }),
      reduced.cache.ttlMs,
    );
  }
}

/** The keys of the items that are not cached, with the index of their first occurrence. */
function missingKeys(
  call: Call,
  kept: CachedItems,
): ReadonlyMap<string, number> {
  const missing = new Map<string, number>();
  for (const [at, key] of (call.itemKeys ?? []).entries()) {
    if (kept[at] == null && !missing.has(key)) {
      missing.set(key, at);
    }
  }
  return missing;
}

/** null for bytes that are not a cached vector. */
function decodeVector(bytes: Buffer): CachedVector | null {
  const entry = decodeAnswer(bytes);
  if (entry === null) {
    return null;
  }
  const text = entry.body.toString("latin1");
  const end = text.indexOf("\n");
  try {
    const model: unknown = JSON.parse(
      Buffer.from(text.slice(0, end), "latin1").toString("utf8"),
    );
    return typeof model === "string"
      ? { entry, model, vector: text.slice(end + 1) }
      : null;
  } catch {
    return null;
  }
}
