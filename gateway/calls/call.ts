import type { FastifyRequest } from "fastify";
import type { z } from "zod";
import {
  MASTER_USER,
  type Caller,
  type OtherPayer,
} from "../access/callers.ts";
import { authorizeNamedModels } from "../access/named-models.ts";
import { refuseIfUnusable } from "../access/models.ts";
import type { RouteName } from "../access/policy.ts";
import type { GatewayConfig } from "../config/types.ts";
import {
  proxyLimitsOf,
  type LimitSources,
  type Payers,
} from "../ledger/payers.ts";
import {
  type CacheInputs,
  type CacheOptions,
  cacheKeyOf,
  itemKeysOf,
  readCacheOptions,
} from "../cache/key.ts";
import { DatabaseUnavailable } from "../database/pool.ts";
import type { Gateway } from "../gateway.ts";
import type { CallGuards } from "../guardrails/call-guards.ts";
import { guardsOf } from "../guardrails/select.ts";
import type { Measure } from "../pricing/prices.ts";
import { CallError } from "../http/errors.ts";
import type { Endpoint, ForwardedHeaders } from "../providers/wire.ts";
import type { ModelGroup } from "../routing/catalog.ts";
import { tagsOf, withTags } from "../routing/tags.ts";
import type { CallTrace } from "../tracing/traces.ts";
import type { ClientShape } from "../dialects/client-shape.ts";
import { payingTags, rejectUnstorable } from "./payer-names.ts";
import type { KeptResponse } from "../responses/kept.ts";
import { readCallOptions, type CallOptions } from "./options.ts";
import type { CallBody } from "./body.ts";
import { readClientAccess, withClientAccess } from "./client-access.ts";
import { endUserOf, type EndUser } from "./end-user.ts";
import {
  authorizeFallbacks,
  type Replacement,
  type RequestedFallbacks,
} from "./fallbacks.ts";
import { providerBody, rejectUnsupportedFields } from "./gateway-fields.ts";
import { metadataOf, withMetadata } from "./metadata.ts";
import { raceOf } from "./race.ts";
import { startTrace } from "./start-trace.ts";
import { storedHeadersOf } from "./stored-headers.ts";

/** The ledger's names of the kinds of calls, equal to LiteLLM's. */
export type CallType =
  | "acompletion"
  | "atext_completion"
  | "aembedding"
  | "anthropic_messages"
  | "aresponses"
  | "amoderation"
  | "aimage_generation"
  | "aimage_edit"
  | "aimage_variation"
  | "arerank"
  | "aspeech"
  | "atranscription"
  | "atranslation"
  | "health_check";

/** A kind of call, defined by its route. */
export interface CallKind {
  /** Its name in the policy, whatever path was called. */
  readonly route: RouteName;
  readonly callType: CallType;
  readonly endpoint: Endpoint;
  readonly streams: boolean;
  /** Its body is a multipart form. */
  readonly takesFiles?: true;
  /** Its answer is passed on as bytes while it arrives. */
  readonly bytes?: true;
  /** Its translation to chat for providers without the endpoint; null: there is none. */
  readonly shape: ClientShape | null;
  readonly schema: z.ZodType<CallBody>;
  /** Images to generate; without it none. */
  countImages?(body: CallBody): number;
  /** Measures the files of a body; their measures stay in the body. */
  prepare?(body: CallBody): Promise<void>;
  /** Reads what a call continues, and decides how its response is stored; without it, it continues and stores nothing. */
  open?(
    gateway: Gateway,
    request: FastifyRequest,
    body: CallBody,
  ): Promise<{ readonly body: CallBody; readonly kept: KeptResponse | null }>;
  /** What a call is priced by where it is not by tokens; without it always by tokens. */
  measure?(body: CallBody, inputTokens: number): Measure;
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
  /** Without fields for the gateway. */
  readonly body: CallBody;
  readonly stream: boolean;
  readonly payers: Payers;
  readonly limitSources: LimitSources;
  readonly inputTokens: number;
  /** Expected output, over all choices. */
  readonly outputTokens: number;
  /** What it is priced by where it is not by tokens; null: always by tokens. */
  readonly measure: Measure | null;
  readonly cache: CacheOptions;
  readonly options: CallOptions;
  readonly fallbacks: RequestedFallbacks;
  /** The caller's own access to the provider is used. */
  readonly ownAccess: boolean;
  /** Aborted when another model has answered instead; null: only this one was asked. */
  readonly race: AbortSignal | null;
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
  /** The client's header; null: none was sent. */
  readonly userAgent: string | null;
  readonly requesterIp: string;
  /** Headers that are stored with its prompt and answer; null: none of these is stored. */
  readonly storedHeaders: Readonly<Record<string, string>> | null;
  /** Set once, at the start; null: the call is not traced. */
  trace: CallTrace | null;
  /** null: no guardrail checks it. */
  readonly guards: CallGuards | null;
  /** null: it continues no stored response, and its own is not stored. */
  readonly kept: KeptResponse | null;
}

export interface CallStart {
  readonly caller: Caller;
  /** The model that the call names. */
  readonly named: ModelGroup;
  readonly sent: CallBody;
  readonly kind: CallKind;
  /** null: it continues no stored response, and its own is not stored. */
  readonly kept?: KeptResponse | null | undefined;
}

/** Determines the payers, the size of the input and the cache key of a call. */
export async function startCall(
  gateway: Gateway,
  request: FastifyRequest,
  { caller, named, sent, kind, kept = null }: CallStart,
): Promise<Call> {
  const received = withMetadata(kind.streams ? sent : withoutStream(sent));
  rejectUnsupportedFields(received);
  authorizeNamedModels(gateway, caller, received);
  const access = readClientAccess(received);
  const person = endUserOf(received);
  const payers = payersOf(caller, named.alias, received, request, person);
  const sender = senderOf(request);
  const tagged = groupForTags(gateway.config, named, payers, sender);
  const group = access === null ? tagged : withClientAccess(tagged, access);
  const guards = guardsOf(gateway, caller, group, received);
  const others = await otherPayersOf(gateway, payers);
  const { headers } = request;
  const options = readCallOptions(received, headers, caller, group.alias);
  const size = sizing(gateway, kind);
  const fallbacks = authorizeFallbacks(
    gateway,
    caller,
    { group, kind, body: received },
    options.fallbacks,
    size,
  );
  const body = providerBody(received);
  const own = { ownAccess: access !== null, fallbacks, kept };
  const cache = cacheOptionsOf(received, headers, options, own);
  const { alias, variant } = variantOf(group, guards);
  const keyInputs = { callType: kind.callType, alias, variant, payers, body };
  const startedAt = Date.now();
  const call: Call = {
    ...size(body, group),
    ...cacheKeysOf(gateway, keyInputs, cache),
    id: request.id,
    startedAt,
    kind,
    caller,
    group,
    stream: kind.streams && asksForEvents(body),
    payers,
    limitSources: limitSourcesOf(gateway, caller, group, others),
    cache,
    options,
    ...own,
    deadlineAt: deadlineOf(gateway.config, options, startedAt),
    whole: null,
    ...sender,
    sessionId: sessionIdOf(received, request) ?? person.session,
    storedHeaders: storedHeadersOf(gateway.config, caller, options, headers),
    trace: null,
    guards,
  };
  return begun(gateway, request, call);
}

/** Starts the trace of a call and makes it known to what answers errors. */
function begun(
  gateway: Pick<Gateway, "traces">,
  request: FastifyRequest,
  call: Call,
): Call {
  call.trace = startTrace(gateway, call, request.headers);
  request.call = call;
  return call;
}

/** What a call keeps of its request besides the body. */
function senderOf(
  request: FastifyRequest,
): Pick<Call, "forwarded" | "race" | "userAgent" | "requesterIp"> {
  const { headers, ip: requesterIp } = request;
  return {
    forwarded: forwardedOf(request),
    race: raceOf(headers),
    userAgent: headers["user-agent"] ?? null,
    requesterIp,
  };
}

function limitSourcesOf(
  { config }: Pick<Gateway, "config">,
  caller: Caller,
  { alias }: ModelGroup,
  { endUser, tags }: OtherPayers,
): LimitSources {
  const proxy = proxyLimitsOf(config.general);
  return { caller, alias, endUser, tags, proxy };
}

function deadlineOf(
  { router }: Pick<GatewayConfig, "router">,
  options: CallOptions,
  startedAt: number,
): number | null {
  const timeoutMs = options.timeoutMs ?? router.timeoutMs;
  return timeoutMs === null ? null : startedAt + timeoutMs;
}

function refuseBlocked(endUser: OtherPayer | null): void {
  if (endUser?.blocked === true) {
    throw new CallError(
      "blocked",
      `End user=${endUser.id} is blocked. Ask the operator of this gateway to unblock it.`,
    );
  }
}

/** Counts the tokens of a body for a group. */
function sizing(gateway: Pick<Gateway, "config" | "tokens">, kind: CallKind) {
  return (body: CallBody, group: ModelGroup): Replacement => {
    const inputTokens = kind.countInput(gateway, body, tokenizedModel(group));
    return {
      body,
      inputTokens,
      outputTokens: kind.estimateOutput(gateway, body, group),
      measure: kind.measure?.(body, inputTokens) ?? null,
    };
  };
}

/** Of a kind that is always answered as a whole. */
function withoutStream(body: CallBody): CallBody {
  if (!("stream" in body)) {
    return body;
  }
  const { stream: _stream, ...rest } = body;
  return rest;
}

/** Speech has a field of its own for it. */
function asksForEvents({ stream, stream_format: format }: CallBody): boolean {
  return stream === true || format === "sse";
}

const NO_CACHE: CacheOptions = {
  read: false,
  store: false,
  requested: false,
  ttlMs: null,
};

/** What a caller invents, or what its own account answers, is not an answer for others. */
function cacheOptionsOf(
  body: CallBody,
  headers: FastifyRequest["headers"],
  { mock }: CallOptions,
  { ownAccess, fallbacks }: Pick<Call, "ownAccess" | "fallbacks">,
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
function variantOf(group: ModelGroup, guards: CallGuards | null): ModelGroup {
  return guards === null
    ? group
    : { ...group, variant: `${group.variant} ${guards.fingerprint}` };
}

function cacheKeysOf(
  { config }: Pick<Gateway, "config">,
  inputs: CacheInputs,
  cache: CacheOptions,
): Pick<Call, "cacheKey" | "itemKeys"> {
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

/** Throws 400 naming the existing tags when no deployment of the alias is for a call with these tags. */
function groupForTags(
  { router }: Pick<GatewayConfig, "router">,
  named: ModelGroup,
  { tags }: Pick<Payers, "tags">,
  { userAgent }: Pick<Call, "userAgent">,
): ModelGroup {
  const group = withTags(named, { tags, userAgent }, router);
  if (group === null) {
    throw new CallError(
      "invalid_request",
      tags.length === 0
        ? `No deployment of ${named.alias} is for this client: its \`User-Agent\` matches no \`tag_regex\`. Send one of the tags ${tagsOf(named).join(", ") || "that the operator of this gateway adds"}, or use another model.`
        : `No deployment of ${named.alias} has ${router.tagFilteringMatchAny ? "one" : "all"} of the tags ${tags.join(", ")} of this call, its key and its team. Existing tags: ${tagsOf(named).join(", ")}.`,
      { param: "tags" },
    );
  }
  refuseIfUnusable(group, named.alias);
  return group;
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
  person: EndUser,
): Payers {
  const endUser =
    endUserHeader(caller, request) ||
    headerOf(request, "end-user-id") ||
    person.name;
  const tags = payingTags(caller, [
    body["tags"],
    metadataOf(body)["tags"],
    metadataOf(body, "litellm_metadata")["tags"],
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

/** The header in which the program with this key names its users; headers of other names never count. */
function endUserHeader(
  caller: Caller,
  { headers }: FastifyRequest,
): string | undefined {
  const name =
    caller.kind === "key" ? caller.metadata["end_user_header"] : undefined;
  const value =
    typeof name === "string" ? headers[name.toLowerCase()] : undefined;
  return typeof value === "string" ? value.trim() : undefined;
}

type OtherPayers = Pick<LimitSources, "endUser" | "tags">;
const NO_OTHERS: OtherPayers = { endUser: null, tags: [] };

/** The end user and the tags of a call that have limits; most calls have neither. Throws 403 for a blocked end user. */
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
  refuseBlocked(foundUser);
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

/** The value of the first header of a name that was sent: ours, or one of LiteLLM's. */
function headerOf(
  { headers }: FastifyRequest,
  name: keyof typeof HEADERS,
): string | undefined {
  const value = HEADERS[name].map((header) => headers[header]).find(Boolean);
  return typeof value === "string" ? value : undefined;
}

const HEADERS = {
  "end-user-id": [
    "x-hearth-end-user-id",
    "x-litellm-end-user-id",
    "x-litellm-customer-id",
  ],
  tags: ["x-hearth-tags", "x-litellm-tags"],
  "trace-id": [
    "x-hearth-trace-id",
    "x-litellm-trace-id",
    "x-litellm-session-id",
    "x-openwebui-chat-id",
  ],
} as const;

const FORWARDED = ["anthropic-version", "anthropic-beta"];

/** The headers of a request that reach providers of Anthropic's format. */
export function forwardedOf({ headers }: FastifyRequest): ForwardedHeaders {
  const found = FORWARDED.flatMap((name) => {
    const value = headers[name];
    return typeof value === "string" ? [[name, value] as const] : [];
  });
  return Object.fromEntries(found);
}

function sessionIdOf(body: CallBody, request: FastifyRequest): string | null {
  const metadata = metadataOf(body);
  const ofLitellm = metadataOf(body, "litellm_metadata");
  return firstText(
    headerOf(request, "trace-id"),
    body["litellm_session_id"],
    body["litellm_trace_id"],
    metadata["session_id"],
    metadata["trace_id"],
    ofLitellm["session_id"],
    ofLitellm["trace_id"],
  );
}

function firstText(...values: readonly unknown[]): string | null {
  const found = values.find(
    (value) => typeof value === "string" && value !== "",
  );
  return (found as string | undefined) ?? null;
}
