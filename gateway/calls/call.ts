import type { FastifyRequest } from "fastify";
import type { z } from "zod";
import {
  MASTER_USER,
  type Caller,
  type OtherPayer,
} from "../access/callers.ts";
import type { RouteName } from "../access/policy.ts";
import {
  proxyLimitsOf,
  type LimitSources,
  type Payers,
} from "../ledger/payers.ts";
import {
  cacheKeyOf,
  itemKeysOf,
  readCacheOptions,
  type CacheOptions,
} from "../cache/key.ts";
import { DatabaseUnavailable } from "../database/pool.ts";
import type { Gateway } from "../gateway.ts";
import { CallError } from "../http/errors.ts";
import type { Endpoint, ForwardedHeaders } from "../providers/wire.ts";
import type { ModelGroup } from "../routing/catalog.ts";
import type { ClientShape } from "../dialects/client-shape.ts";
import { payingTags, rejectUnstorable } from "./payer-names.ts";
import { readCallOptions, type CallOptions } from "./options.ts";
import type { CallBody } from "./body.ts";

/** The ledger's names of the kinds of calls, equal to LiteLLM's. */
export type CallType =
  | "acompletion"
  | "atext_completion"
  | "aembedding"
  | "anthropic_messages"
  | "aresponses"
  | "amoderation"
  | "aimage_generation"
  | "health_check";

/** A kind of call, defined by its route. */
export interface CallKind {
  /** Its name in the policy, whatever path was called. */
  readonly route: RouteName;
  readonly callType: CallType;
  readonly endpoint: Endpoint;
  readonly streams: boolean;
  /** Its translation to chat for providers without the endpoint; null: there is none. */
  readonly shape: ClientShape | null;
  readonly schema: z.ZodType<CallBody>;
  /** Images to generate; without it none. */
  countImages?(body: CallBody): number;
  countInput(
    gateway: Pick<Gateway, "tokens">,
    body: CallBody,
    model: string,
  ): number;
  /** The maximum of output tokens expected, over all choices. */
  estimateOutput(
    gateway: Pick<Gateway, "config" | "tokens">,
    body: CallBody,
    group: ModelGroup,
  ): number;
}

/** One call to a model. */
export interface Call {
  /** Sent to the provider as `x-request-id`; the key in the ledger. */
  readonly id: string;
  readonly startedAt: number;
  readonly kind: CallKind;
  readonly caller: Caller;
  readonly group: ModelGroup;
  readonly body: CallBody;
  readonly stream: boolean;
  readonly payers: Payers;
  readonly limitSources: LimitSources;
  readonly inputTokens: number;
  /** Expected output, over all choices. */
  readonly outputTokens: number;
  readonly cache: CacheOptions;
  readonly options: CallOptions;
  /** When the call must have ended, ms since the epoch; null: no limit. */
  readonly deadlineAt: number | null;
  /** Headers of the caller that are forwarded to the provider. */
  readonly forwarded: ForwardedHeaders;
  /** null: this call does not use the cache. */
  readonly cacheKey: string | null;
  /** Embeddings are cached item by item: the key of each; null: not an embeddings call, or not cached. */
  readonly itemKeys: readonly string[] | null;
  /** Of an embeddings call reduced to what is not cached: the original call. */
  readonly whole: Call | null;
  readonly sessionId: string | null;
  readonly requesterIp: string;
}

/** Determines the payers, the size of the input and the cache key of a call. */
export async function startCall(
  gateway: Pick<Gateway, "callers" | "config" | "tokens">,
  request: FastifyRequest,
  caller: Caller,
  group: ModelGroup,
  body: CallBody,
  kind: CallKind,
): Promise<Call> {
  const payers = payersOf(caller, group.alias, body, request);
  const { endUser, tags } = await otherPayersOf(gateway, payers);
  if (endUser?.blocked === true) {
    throw new CallError(
      "blocked",
      `End user=${endUser.id} is blocked. Ask the operator of this gateway to unblock it.`,
    );
  }
  const cache = readCacheOptions(body, request.headers);
  const options = readCallOptions(body, request.headers, caller);
  const startedAt = Date.now();
  const timeoutMs = options.timeoutMs ?? gateway.config.router.timeoutMs;
  const { config } = gateway;
  const inputs = { callType: kind.callType, alias: group.alias, payers, body };
  const itemKeys =
    kind.callType === "aembedding"
      ? itemKeysOf(config.cache, inputs, cache)
      : null;
  const call: Call = {
    id: request.id,
    startedAt,
    kind,
    caller,
    group,
    body,
    stream: kind.streams && body["stream"] === true,
    payers,
    limitSources: {
      caller,
      alias: group.alias,
      endUser,
      tags,
      proxy: proxyLimitsOf(config.general),
    },
    inputTokens: kind.countInput(gateway, body, tokenizedModel(group)),
    outputTokens: kind.estimateOutput(gateway, body, group),
    cache,
    options,
    deadlineAt: timeoutMs === null ? null : startedAt + timeoutMs,
    cacheKey:
      itemKeys?.length === 1
        ? (itemKeys[0] ?? null)
        : cacheKeyOf(config.cache, inputs, cache),
    itemKeys,
    whole: null,
    forwarded: forwardedOf(request),
    sessionId: sessionOf(body, request),
    requesterIp: request.ip,
  };
  request.call = call;
  return call;
}

/** The model whose tokenizer is used for an alias. */
export function tokenizedModel(group: ModelGroup): string {
  const [first] = group.deployments;
  return first?.baseModel ?? first?.model ?? group.alias;
}

function payersOf(
  caller: Caller,
  alias: string,
  body: CallBody,
  request: FastifyRequest,
): Payers {
  const endUser =
    headerOf(request, "end-user-id") ??
    (typeof body["user"] === "string" ? body["user"] : "");
  const tags = payingTags(caller, [
    body["tags"],
    metadataOf(body)["tags"],
    headerOf(request, "tags")?.split(","),
  ]);
  rejectUnstorable("user", [endUser]);
  const common = { alias, endUser: endUser === "" ? null : endUser, tags };
  if (caller.kind === "master") {
    return {
      ...common,
      apiKey: null,
      userId: MASTER_USER,
      userPays: true,
      teamId: null,
      organizationId: null,
    };
  }
  return {
    ...common,
    apiKey: caller.token,
    userId: caller.userId,
    userPays: caller.userPays,
    teamId: caller.team?.id ?? null,
    organizationId: caller.organization?.id ?? null,
  };
}

type OtherPayers = Pick<LimitSources, "endUser" | "tags">;
const NO_OTHERS: OtherPayers = { endUser: null, tags: [] };

/** The end user and the tags of a call that have limits; most calls have neither. */
async function otherPayersOf(
  { callers }: Pick<Gateway, "callers">,
  { endUser, tags }: Payers,
): Promise<OtherPayers> {
  if (endUser === null && tags.length === 0) {
    return NO_OTHERS;
  }
  const [foundUser, foundTags] = await Promise.all([
    endUser === null ? null : findPayer(callers.endUsers, endUser),
    Promise.all(tags.map((tag) => findPayer(callers.tags, tag))),
  ]);
  return {
    endUser: foundUser,
    tags: foundTags.filter((tag) => tag !== null),
  };
}

/** An unknown end user or tag has no limits; one that cannot be looked up while the database is unavailable counts as unknown. */
async function findPayer(
  lookup: {
    find(id: string): Promise<OtherPayer | null>;
    peek(id: string): OtherPayer | null | undefined;
  },
  id: string,
): Promise<OtherPayer | null> {
  const known = lookup.peek(id);
  if (known !== undefined) {
    return known;
  }
  return lookup.find(id).catch((error: unknown) => {
    if (error instanceof DatabaseUnavailable) {
      return null;
    }
    throw error;
  });
}

/** The value of `x-hearth-<name>` or its LiteLLM twin. */
function headerOf(
  { headers }: FastifyRequest,
  name: keyof typeof HEADERS,
): string | undefined {
  const [ours, theirs] = HEADERS[name];
  const value = headers[ours] ?? headers[theirs];
  return typeof value === "string" ? value : undefined;
}

const HEADERS = {
  "end-user-id": ["x-hearth-end-user-id", "x-litellm-end-user-id"],
  tags: ["x-hearth-tags", "x-litellm-tags"],
  "trace-id": ["x-hearth-trace-id", "x-litellm-trace-id"],
} as const;

const FORWARDED = ["anthropic-version", "anthropic-beta"];

function forwardedOf({ headers }: FastifyRequest): ForwardedHeaders {
  const found = FORWARDED.flatMap((name) => {
    const value = headers[name];
    return typeof value === "string" ? [[name, value] as const] : [];
  });
  return Object.fromEntries(found);
}

function metadataOf(body: CallBody): Readonly<Record<string, unknown>> {
  const { metadata } = body;
  return typeof metadata === "object" && metadata !== null
    ? (metadata as Record<string, unknown>)
    : {};
}

function sessionOf(body: CallBody, request: FastifyRequest): string | null {
  const named =
    headerOf(request, "trace-id") ??
    metadataOf(body)["session_id"] ??
    metadataOf(body)["trace_id"];
  return typeof named === "string" ? named : null;
}
