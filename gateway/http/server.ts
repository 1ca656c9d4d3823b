import { randomUUID } from "node:crypto";
import {
  fastify,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from "fastify";
import type { Logger } from "pino";
import type { Caller } from "../access/callers.ts";
import type { Admitted } from "../calls/admit.ts";
import type { Call } from "../calls/call.ts";
import { contentsErrorOf } from "../dialects/contents-error.ts";
import { messagesErrorOf } from "../dialects/messages-error.ts";
import { noRoutePage } from "../pages/no-route.ts";
import { acceptsPage, send } from "../pages/send.ts";
import { asCallError } from "./as-call-error.ts";
import { HEADERS_ARRIVAL_MS, maxArrivalMs, type Bodies } from "./bodies.ts";
import { CrossOrigin } from "./cross-origin.ts";
import { CallError, errorBody, statusOf } from "./errors.ts";
import { isInner } from "./inner-request.ts";
import { insteadOfRoute } from "./unsupported-routes.ts";
import { asksForSocket } from "./upgrade.ts";

interface ServerOptions {
  readonly bodyLimitBytes: number;
  readonly bodies: Bodies;
  readonly trustedProxies: readonly string[];
  readonly corsOrigins: readonly string[];
  readonly log: Logger;
  readonly version: string;
  /** In which the headers of a request must arrive; its body has more. A client that reads nothing of its answer for so long is disconnected. */
  readonly arrivalMs?: number;
}

const CHECK_EVERY_MS = 30_000;

/** The HTTP server without its routes: bodies are JSON, whatever their content type; all errors have one shape. */
export function createServer({
  bodyLimitBytes,
  bodies,
  trustedProxies,
  corsOrigins,
  log,
  version,
  arrivalMs = HEADERS_ARRIVAL_MS,
}: ServerOptions): FastifyInstance {
  const server = fastify({
    logger: false,
    // A body that stayed incomplete would hold its memory for good: a few of them would leave none for other calls.
    requestTimeout: maxArrivalMs(bodyLimitBytes, arrivalMs),
    http: {
      // Other requests to upgrade, such as those of Java's client to HTTP/2, are answered as if they had not asked.
      shouldUpgradeCallback: asksForSocket,
      headersTimeout: arrivalMs,
      connectionsCheckingInterval: Math.min(CHECK_EVERY_MS, arrivalMs),
    },
    rewriteUrl: ({ url = "" }) => ownPath(url),
    // The id of the call, if the request is one.
    genReqId: () => randomUUID(),
    bodyLimit: bodyLimitBytes,
    trustProxy: trustedProxies.length === 0 ? false : [...trustedProxies],
    // Calls may finish; the drain closes the other connections.
    forceCloseConnections: "idle",
    routerOptions: {
      ignoreTrailingSlash: true,
      // Some paths contain a key, percent-encoded and possibly chosen by its creator.
      maxParamLength: 3 * 256,
    },
    return503OnClosing: false,
    frameworkErrors: (_error, _request, reply) =>
      sendError(
        reply as FastifyReply,
        new CallError(
          "invalid_request",
          "The URL is invalid: percent-encode it as UTF-8.",
        ),
      ),
  });
  server.removeAllContentTypeParsers();
  server.addContentTypeParser("*", bodies.parse);
  server.decorateRequest("caller", null);
  server.decorateRequest("call", null);
  server.decorateRequest("admitted", null);
  dropUnreadAnswers(server, arrivalMs);
  server.addHook("onRequest", (request, reply, done) => {
    reply.raw.on("close", () => bodies.release(request.raw));
    if (isInner(reply)) {
      // Without a connection, it is never idle.
      reply.raw.setTimeout = () => reply.raw;
    }
    done();
  });
  rejectUnknownPaths(server, new CrossOrigin(corsOrigins), version);
  server.setErrorHandler((error, request, reply) => {
    const { completeError, errorBody } = request.routeOptions.config;
    const known = asCallError(error, request, log);
    sendError(reply, completeError?.(request, known) ?? known, errorBody);
  });
  return server;
}

/**
 * An answer that its client does not read, and the body of its request, would stay in memory for good. Of the requests of a connection
 * that was closed for too many at once, the rest would be answered to no client.
 */
function dropUnreadAnswers(server: FastifyInstance, idleMs: number): void {
  server.addHook("onRequest", ({ raw }, _reply, done) => {
    if (!raw.socket.destroyed) {
      done();
    }
  });
  server.addHook("onSend", (_request, { raw }, _payload, done) => {
    raw.setTimeout(idleMs, () => raw.destroy());
    done();
  });
}

/**
 * Paths of clients whose address ends with a slash or with the `/v1` that they add, of Azure's clients, which name a deployment only
 * where its older API does (`AzureOpenAI.responses` does not), and of OpenAI's first clients and editors, which name the model.
 * https://learn.microsoft.com/azure/ai-foundry/openai/latest
 */
function ownPath(url: string): string {
  return url
    .replace(/^[^?]+/, (path) => path.replaceAll(/\/{2,}/g, "/"))
    .replace(/^\/v1(beta)?(?=\/v1(beta)?\/)/, "")
    .replace(/^\/openai\/(?!deployments\/)(v1\/)?/, "/v1/")
    .replace(
      /^(?:\/v1)?\/engines\/(.+?)\/((?:chat\/)?completions|embeddings)(?=\?|$)/,
      (_path, model: string, call: string) =>
        `/openai/deployments/${model.replaceAll("/", "%2F")}/${call}`,
    );
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Where errors of the route do not have the shape of OpenAI's. */
    readonly errorBody?: (error: CallError) => unknown;
    /** Where errors have headers of their request. */
    readonly completeError?: (
      request: FastifyRequest,
      error: CallError,
    ) => CallError;
    /** The route of a form without files; bodies are JSON, whatever their content type, unless this or the next is set. */
    readonly takesForm?: boolean;
    /** The route of a multipart form. */
    readonly takesFiles?: boolean;
  }
  interface FastifyRequest {
    /** Known before the body is read; null on routes without a key. */
    caller: Caller | null;
    /** Known once its payers and its size are. */
    call: Call | null;
    /** The call's reservation. */
    admitted: Admitted | null;
  }
}

/** An unread body up to this size is discarded, and the connection is kept. */
const MAX_DISCARDED_BYTES = 1_048_576;

/** Whether a request still sends more than is worth discarding. */
function stillSends({ raw, headers }: FastifyRequest): boolean {
  if (raw.complete) {
    return false;
  }
  return (
    headers["transfer-encoding"] !== undefined ||
    Number(headers["content-length"] ?? 0) > MAX_DISCARDED_BYTES
  );
}

function stopReading(reply: FastifyReply): void {
  if (stillSends(reply.request)) {
    // Otherwise one more chunk is read before the connection is closed.
    reply.request.raw.socket.pause();
    reply.header("connection", "close");
  }
}

function sendError(
  reply: FastifyReply,
  error: CallError,
  bodyOf: (error: CallError) => unknown = errorBody,
): FastifyReply {
  stopReading(reply);
  return reply
    .code(statusOf(error))
    .headers(error.details.headers ?? {})
    .type("application/json; charset=utf-8")
    .send(JSON.stringify(bodyOf(error)));
}

function rejectUnknownPaths(
  server: FastifyInstance,
  crossOrigin: CrossOrigin,
  version: string,
): void {
  const reject = (request: FastifyRequest, reply: FastifyReply) =>
    crossOrigin.allowNoRoute(request, reply) ??
    sendNoRoute(request, reply, version);
  server.addHook("onRequest", (request, reply, done) => {
    // Before the body is read: it would not be used.
    if (request.is404) {
      reject(request, reply);
    } else {
      done();
    }
  });
  // The hook above answers first; without this handler a body would have no parser.
  server.setNotFoundHandler(reject);
}

/** Paths of APIs whose errors have a shape of their own: Anthropic's, Google's, Ollama's and Cohere's. Clients read the message in no other. */
const ERROR_BODIES: readonly (readonly [
  RegExp,
  (error: CallError) => unknown,
])[] = [
  [/^(\/v1)?\/messages\//, messagesErrorOf],
  [/^\/(v1beta|upload|(v1\/)?cachedContents)(\/|$)/, contentsErrorOf],
  [/^\/api\//, ({ message }) => ({ error: message })],
  [/^\/v2\/(chat|embed)$/, ({ message }) => ({ message })],
];

function sendNoRoute(
  request: FastifyRequest,
  reply: FastifyReply,
  version: string,
): FastifyReply {
  const path = pathOf(request);
  const error = new CallError(
    "not_found",
    insteadOfRoute(path) ??
      `Route ${request.method} ${path} not found. ${path.startsWith("/v1/chat/completions/") ? "The client adds /chat/completions itself: remove it from the address that the client is given." : "/openapi.json lists the routes."}`,
  );
  // An answer from a cache must suit the program or the browser, and its origin.
  reply.header("vary", "accept, origin");
  if (request.method === "GET" && acceptsPage(request)) {
    stopReading(reply);
    reply.code(statusOf(error));
    return send(request, reply, noRoutePage(error.message, version));
  }
  const [, bodyOf = errorBody] =
    ERROR_BODIES.find(([paths]) => paths.test(path)) ?? [];
  return sendError(reply, error, bodyOf);
}

/** The path without its query, which may contain a key. */
function pathOf(request: FastifyRequest): string {
  return request.url.split("?")[0] ?? request.url;
}
