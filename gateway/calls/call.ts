import type { FastifyRequest } from "fastify";
import type { z } from "zod";
import type { Caller } from "../access/callers.ts";
import { authorizeNamedModels } from "../access/named-models.ts";
import { refuseIfUnusable } from "../access/models.ts";
import type { RouteName } from "../access/policy.ts";
import type { CacheOptions } from "../cache/key.ts";
import type { GatewayConfig } from "../config/types.ts";
import type { LimitSources, Payers } from "../ledger/payers.ts";
import type { Gateway } from "../gateway.ts";
import type { CallGuards } from "../guardrails/call-guards.ts";
import { guardsOf } from "../guardrails/select.ts";
import type { Measure } from "../pricing/measure.ts";
import { CallError } from "../http/errors.ts";
import type { Endpoint, ForwardedHeaders } from "../providers/wire.ts";
import type { ModelGroup } from "../routing/catalog.ts";
import { tagsOf, withTags } from "../routing/tags.ts";
import type { CallTrace } from "../tracing/traces.ts";
import type { ClientShape } from "../dialects/client-shape.ts";
import type { ResponseContext } from "../responses/response-context.ts";
import { readCallOptions, type CallOptions } from "./options.ts";
import type { CallBody } from "./body.ts";
import { startClock, type CallClock } from "./call-clock.ts";
import { readClientAccess, withClientAccess } from "./client-access.ts";
import {
  cacheKeysOf,
  cacheOptionsOf,
  variantOf,
  type CacheKeys,
} from "./call-cache.ts";
import { limitSourcesOf, otherPayersOf, payersOf } from "./call-payers.ts";
import { endUserOf } from "./end-user.ts";
import {
  authorizeFallbacks,
  type Replacement,
  type RequestedFallbacks,
} from "./fallbacks.ts";
import { providerBody, rejectUnsupportedFields } from "./gateway-fields.ts";
import { withMetadata } from "./metadata.ts";
import { raceOf } from "./race.ts";
import { forwardedOf, sessionIdOf } from "./request-headers.ts";
import { startTrace } from "./start-trace.ts";
import { storedHeadersOf } from "./stored-headers.ts";

/** The ledger's names of the kinds of calls, equal to LiteLLM's. */
type CallType =
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
  /** Measures the files of a body, whose measures stay in the body, or rejects what the schema cannot. */
  prepare?(body: CallBody): Promise<void> | void;
  /** Reads what a call continues, and decides how its response is stored; without it, it continues and stores nothing. */
  open?(
    gateway: Gateway,
    request: FastifyRequest,
    body: CallBody,
  ): Promise<{
    readonly body: CallBody;
    readonly context: ResponseContext | null;
  }>;
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
export interface Call extends CacheKeys, CallClock {
  /** Sent to the provider as `x-request-id`; the key in the ledger. */
  readonly id: string;
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
  /** When the call must have ended, by `performance.now()`; null: no limit. */
  readonly deadlineAt: number | null;
  /** Headers of the caller that are forwarded to the provider. */
  readonly forwarded: ForwardedHeaders;
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
  readonly responseContext: ResponseContext | null;
}

interface CallStart {
  readonly caller: Caller;
  /** The model that the call names. */
  readonly named: ModelGroup;
  readonly sent: CallBody;
  readonly kind: CallKind;
  /** null: it continues no stored response, and its own is not stored. */
  readonly responseContext?: ResponseContext | null | undefined;
}

/** Determines the payers, the size of the input and the cache key of a call. */
export async function startCall(
  gateway: Gateway,
  request: FastifyRequest,
  { caller, named, sent, kind, responseContext = null }: CallStart,
): Promise<Call> {
  const received = withMetadata(kind.streams ? sent : withoutStream(sent));
  rejectUnsupportedFields(received, kind.callType);
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
  const own = { ownAccess: access !== null, fallbacks, responseContext };
  const cache = cacheOptionsOf(received, headers, options, own);
  const { alias, variant } = variantOf(group, guards);
  const keyInputs = { callType: kind.callType, alias, variant, payers, body };
  const call: Call = {
    ...size(body, group),
    ...cacheKeysOf(gateway, keyInputs, cache),
    id: request.id,
    ...startClock(),
    kind,
    caller,
    group,
    stream: kind.streams && asksForEvents(body),
    payers,
    limitSources: limitSourcesOf(gateway, caller, group, others),
    cache,
    options,
    ...own,
    deadlineAt: deadlineOf(gateway.config, options),
    whole: null,
    ...sender,
    sessionId: sessionIdOf(received, request) ?? person.session,
    storedHeaders: storedHeadersOf(gateway.config, caller, options, headers),
    trace: null,
    guards,
  };
  call.trace = startTrace(gateway, call, headers);
  // For what answers errors.
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

function deadlineOf(
  { router }: Pick<GatewayConfig, "router">,
  options: CallOptions,
): number | null {
  const timeoutMs = options.timeoutMs ?? router.timeoutMs;
  return timeoutMs === null ? null : performance.now() + timeoutMs;
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
