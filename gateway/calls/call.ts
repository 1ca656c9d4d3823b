import { randomUUID } from "node:crypto";
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
  readCacheWishes,
  type CacheWishes,
} from "../cache/key.ts";
import { DatabaseUnavailable } from "../database/pool.ts";
import type { Gateway } from "../gateway.ts";
import { CallError } from "../http/errors.ts";
import type { Endpoint, ForwardedHeaders } from "../providers/wire.ts";
import type { ModelGroup } from "../routing/catalog.ts";
import type { ClientShape } from "../dialects/client-shape.ts";
import { payingTags, refuseUnholdable } from "./payer-names.ts";
import { readCallWishes, type CallWishes } from "./wishes.ts";
import type { CallBody } from "./body.ts";

/** What the ledger calls a kind of call; LiteLLM's names. */
export type CallType =
  | "acompletion"
  | "atext_completion"
  | "aembedding"
  | "anthropic_messages"
  | "aresponses"
  | "amoderation"
  | "aimage_generation"
  | "health_check";

/** What a route knows of its kind of call. */
export interface CallKind {
  /** Its name in the policy, whatever path it was called by. */
  readonly route: RouteName;
  readonly callType: CallType;
  readonly endpoint: Endpoint;
  readonly streams: boolean;
  /** How it goes through chat where a provider lacks the endpoint; null: it does not. */
  readonly shape: ClientShape | null;
  readonly schema: z.ZodType<CallBody>;
  /** Images that the call makes; none without it. */
  countImages?(body: CallBody): number;
  countInput(
    gateway: Pick<Gateway, "tokens">,
    body: CallBody,
    model: string,
  ): number;
  /** The most output tokens the call is expected to make, over all its choices. */
  estimateOutput(
    gateway: Pick<Gateway, "config" | "tokens">,
    body: CallBody,
    group: ModelGroup,
  ): number;
}

/** One call on its way through the gateway. */
export interface Call {
  /** Goes to the provider as `x-request-id` and is the ledger's key. */
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
  /** What it is expected to produce, over all its choices. */
  readonly outputTokens: number;
  readonly cache: CacheWishes;
  readonly wishes: CallWishes;
  /** When the whole call must have ended, ms since the epoch; null: no such limit. */
  readonly deadlineAt: number | null;
  /** Headers of the caller that reach the provider. */
  readonly forwarded: ForwardedHeaders;
  /** null: this call neither reads nor fills the cache. */
  readonly cacheKey: string | null;
  /** Embeddings are cached by the item: the name of each; null: the call is no embeddings call, or not cached. */
  readonly itemKeys: readonly string[] | null;
  /** Of an embeddings call for only what the cache does not hold: the call as it was sent. */
  readonly whole: Call | null;
  readonly sessionId: string | null;
  readonly requesterIp: string;
}

/** Gathers who pays, what the input weighs and which cached answer would do. */
export async function beginCall(
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
      `End user=${endUser.id} is blocked. Ask whoever runs this gateway to unblock it.`,
    );
  }
  const cache = readCacheWishes(body, request.headers);
  const wishes = readCallWishes(body, request.headers, caller);
  const startedAt = Date.now();
  const timeoutMs = wishes.timeoutMs ?? gateway.config.router.timeoutMs;
  const { config } = gateway;
  const asked = { callType: kind.callType, alias: group.alias, payers, body };
  const itemKeys =
    kind.callType === "aembedding"
      ? itemKeysOf(config.cache, asked, cache)
      : null;
  return {
    id: randomUUID(),
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
    wishes,
    deadlineAt: timeoutMs === null ? null : startedAt + timeoutMs,
    cacheKey:
      itemKeys?.length === 1
        ? (itemKeys[0] ?? null)
        : cacheKeyOf(config.cache, asked, cache),
    itemKeys,
    whole: null,
    forwarded: forwardedOf(request),
    sessionId: sessionOf(body, request),
    requesterIp: request.ip,
  };
}

/** The model whose tokenizer counts for an alias. */
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
  refuseUnholdable("user", [endUser]);
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

/** The end user and the tags of a call as far as they are known here; most calls have neither. */
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

/** An unknown end user or tag has no limits; while the database is away one that was never seen counts as unknown. */
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
