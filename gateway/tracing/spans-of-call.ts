import {
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Context,
  type Span,
  type Tracer,
} from "@opentelemetry/api";
import {
  ATTR_ERROR_TYPE,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVER_PORT,
} from "@opentelemetry/semantic-conventions";
import { COST, GEN_AI, HEARTH } from "./attributes.ts";
import { operationOf, providerOf } from "./gen-ai-names.ts";
import { inputMessages, outputMessages } from "./messages.ts";
import type {
  CallTrace,
  TracedAttempt,
  TracedCall,
  TracedEnd,
} from "./traces.ts";

type Headers = Readonly<Record<string, string>>;
type TracedError = TracedEnd["error"];

/** Of a status: a provider's error text can be long. */
const MAX_MESSAGE_CHARACTERS = 300;
const NO_HEADERS: Headers = {};
/** Callers may send addresses of their own. */
const MAX_SERVERS = 1_000;

/** The spans of one call: its own and one for each attempt. */
export class SpansOfCall implements CallTrace {
  readonly #tracer: Tracer;
  readonly #span: Span;
  readonly #context: Context;
  readonly #call: TracedCall;
  readonly #headersOf: ((context: Context) => Headers) | null;
  /** Attempts under way, by deployment. */
  readonly #open = new Map<string, Span>();
  #attempts = 0;
  /** Of the latest attempt. */
  #alias: string;
  #fallbacks = 0;
  #isOpen = true;

  constructor(
    tracer: Tracer,
    span: Span,
    context: Context,
    call: TracedCall,
    headersOf: ((context: Context) => Headers) | null,
  ) {
    this.#tracer = tracer;
    this.#span = span;
    this.#context = context;
    this.#call = call;
    this.#alias = call.alias;
    this.#headersOf = headersOf;
  }

  passedOver(deploymentIds: readonly string[]): void {
    this.#span.addEvent("deployments passed over while cooling down", {
      [HEARTH.deploymentId]: [...deploymentIds],
    });
  }

  attempt({ deployment, alias, pauseMs }: TracedAttempt): void {
    const operation = operationOf(this.#call.callType);
    this.#attempts++;
    if (alias !== this.#alias) {
      this.#alias = alias;
      this.#fallbacks++;
    }
    const span = this.#tracer.startSpan(
      `${operation} ${deployment.model}`,
      { kind: SpanKind.CLIENT },
      this.#context,
    );
    const attributes: Attributes = {
      [GEN_AI.operation]: operation,
      [GEN_AI.provider]: providerOf(deployment.providerName),
      [GEN_AI.requestModel]: deployment.model,
      [HEARTH.attempt]: this.#attempts,
      [HEARTH.deploymentId]: deployment.id,
    };
    if (alias !== this.#call.alias) {
      attributes[HEARTH.fallback] = alias;
    }
    if (pauseMs > 0) {
      attributes[HEARTH.pauseMs] = pauseMs;
    }
    const server = serverOf(deployment.apiBase);
    if (server !== null) {
      attributes[ATTR_SERVER_ADDRESS] = server.address;
      attributes[ATTR_SERVER_PORT] = server.port;
    }
    span.setAttributes(attributes);
    this.#open.set(deployment.id, span);
  }

  headers(deploymentId: string): Headers {
    const span = this.#open.get(deploymentId);
    return this.#headersOf === null || span === undefined
      ? NO_HEADERS
      : this.#headersOf(trace.setSpan(this.#context, span));
  }

  answered(kind: "whole" | "stream", deploymentId: string): void {
    if (kind === "whole") {
      this.#endAttempt(deploymentId, null);
    } else {
      this.#open.get(deploymentId)?.addEvent("stream started");
    }
  }

  failed(status: number, message: string, deploymentId: string): void {
    this.#open
      .get(deploymentId)
      ?.setAttribute(ATTR_HTTP_RESPONSE_STATUS_CODE, status);
    this.#endAttempt(deploymentId, { type: String(status), message });
  }

  coolingDown(deploymentId: string, until: number): void {
    this.#span.addEvent("deployment cooling down", {
      [HEARTH.deploymentId]: deploymentId,
      [HEARTH.cooldownUntil]: new Date(until).toISOString(),
    });
  }

  end(end: TracedEnd): void {
    if (!this.#isOpen) {
      return;
    }
    if (this.#span.isRecording()) {
      this.#span.setAttributes(endAttributes(end));
      if (end.content !== null) {
        this.#showContent(end.content);
      }
      if (end.clientDisconnected) {
        this.#span.addEvent("client disconnected");
      }
    }
    this.#end(end.error);
  }

  endUnanswered(error: TracedError): void {
    if (this.#isOpen) {
      this.#end(error);
    }
  }

  #end(error: TracedError): void {
    this.#isOpen = false;
    // Attempts that are still open fail with their call.
    for (const deploymentId of this.#open.keys()) {
      this.#endAttempt(deploymentId, error);
    }
    if (this.#attempts > 1) {
      this.#span.setAttribute(
        HEARTH.retries,
        this.#attempts - 1 - this.#fallbacks,
      );
      this.#span.setAttribute(HEARTH.fallbacks, this.#fallbacks);
    }
    endSpan(this.#span, error);
  }

  #endAttempt(deploymentId: string, error: TracedError): void {
    const span = this.#open.get(deploymentId);
    if (span !== undefined) {
      endSpan(span, error);
    }
    this.#open.delete(deploymentId);
  }

  #showContent({ body, response }: NonNullable<TracedEnd["content"]>): void {
    this.#span.setAttribute(GEN_AI.inputMessages, inputMessages(body));
    if (response !== null) {
      this.#span.setAttribute(GEN_AI.outputMessages, outputMessages(response));
    }
  }
}

function endSpan(span: Span, error: TracedError): void {
  if (error !== null) {
    span.setAttribute(ATTR_ERROR_TYPE, error.type);
    span.setStatus({
      code: SpanStatusCode.ERROR,
      message: error.message.slice(0, MAX_MESSAGE_CHARACTERS),
    });
  }
  span.end();
}

/** What a call's span shows from the start. */
export function startAttributes(call: TracedCall): Attributes {
  const { max_tokens, max_completion_tokens, temperature, top_p } = call.body;
  const { userId, teamId, endUser, tags } = call.payers;
  const attributes: Attributes = {
    [GEN_AI.operation]: operationOf(call.callType),
    [GEN_AI.requestModel]: call.alias,
    [HEARTH.callId]: call.id,
  };
  if (call.stream) {
    attributes[GEN_AI.requestStream] = true;
  }
  putNumber(
    attributes,
    GEN_AI.requestMaxTokens,
    max_completion_tokens ?? max_tokens,
  );
  putNumber(attributes, GEN_AI.requestTemperature, temperature);
  putNumber(attributes, GEN_AI.requestTopP, top_p);
  put(attributes, GEN_AI.conversationId, call.sessionId);
  put(attributes, GEN_AI.sessionId, call.sessionId);
  put(attributes, GEN_AI.userId, userId);
  put(attributes, HEARTH.teamId, teamId);
  put(attributes, HEARTH.endUser, endUser);
  put(attributes, HEARTH.keyAlias, call.keyAlias);
  if (tags.length > 0) {
    attributes[HEARTH.tags] = [...tags];
  }
  return attributes;
}

function endAttributes(end: TracedEnd): Attributes {
  const attributes: Attributes = {
    [GEN_AI.inputTokens]: end.inputTokens,
    [GEN_AI.outputTokens]: end.outputTokens,
    [COST]: end.cost,
    [HEARTH.cache]: end.cache,
  };
  put(attributes, GEN_AI.responseId, end.responseId);
  if (end.firstTokenAt !== null) {
    attributes[GEN_AI.timeToFirstChunk] =
      (end.firstTokenAt - end.startedAt) / 1_000;
  }
  put(attributes, GEN_AI.cacheReadTokens, end.cacheReadTokens || null);
  put(attributes, GEN_AI.cacheWriteTokens, end.cacheWriteTokens || null);
  put(attributes, HEARTH.saved, end.cache === "hit" ? end.saved : null);
  put(attributes, HEARTH.estimated, end.estimated || null);
  put(attributes, HEARTH.clientDisconnected, end.clientDisconnected || null);
  return attributes;
}

/** Adds what is known: the SDK would count null as a value. */
function put(
  attributes: Attributes,
  name: string,
  value: string | number | boolean | null,
): void {
  if (value !== null) {
    attributes[name] = value;
  }
}

/** Adds a parameter that a caller may have sent as anything. */
function putNumber(attributes: Attributes, name: string, value: unknown): void {
  if (typeof value === "number") {
    attributes[name] = value;
  }
}

interface Server {
  readonly address: string;
  readonly port: number;
}

const servers = new Map<string, Server>();

/** Parsed once for each address. */
function serverOf(apiBase: string): Server | null {
  const cached = servers.get(apiBase);
  if (cached !== undefined) {
    return cached;
  }
  if (!URL.canParse(apiBase)) {
    return null;
  }
  const { hostname: address, port, protocol } = new URL(apiBase);
  const found = {
    address,
    port: Number(port) || (protocol === "http:" ? 80 : 443),
  };
  if (servers.size < MAX_SERVERS) {
    servers.set(apiBase, found);
  }
  return found;
}
