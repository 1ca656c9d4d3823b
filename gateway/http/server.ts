import {
  fastify,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from "fastify";
import type { Logger } from "pino";
import type { Caller } from "../access/callers.ts";
import { DatabaseUnavailable } from "../database/pool.ts";
import { JournalFull } from "../journal/journal.ts";
import { Bodies } from "./bodies.ts";
import { conflictOf } from "./conflicts.ts";
import {
  CallError,
  databaseUnavailable,
  errorBody,
  statusOf,
} from "./errors.ts";

export interface ServerOptions {
  readonly bodyLimitBytes: number;
  readonly bodiesLimitBytes: number | null;
  readonly trustedProxies: readonly string[];
  readonly log: Logger;
}

/** The HTTP server without its routes: bodies are JSON whatever their content type says, every error has one shape. */
export function createServer({
  bodyLimitBytes,
  bodiesLimitBytes,
  trustedProxies,
  log,
}: ServerOptions): FastifyInstance {
  const server = fastify({
    logger: false,
    bodyLimit: bodyLimitBytes,
    trustProxy: trustedProxies.length === 0 ? false : [...trustedProxies],
    // Calls end in their own time; the drain closes the other connections.
    forceCloseConnections: "idle",
    routerOptions: {
      ignoreTrailingSlash: true,
      // A key that its maker chose stands in some addresses, percent-encoded.
      maxParamLength: 3 * 256,
    },
    exposeHeadRoutes: false,
    return503OnClosing: false,
    frameworkErrors: (_error, _request, reply) =>
      sendError(
        reply as FastifyReply,
        new CallError(
          "invalid_request",
          "The address is not valid: percent-encode what stands in it as UTF-8.",
        ),
      ),
  });
  const bodies = new Bodies(bodiesLimitBytes);
  server.removeAllContentTypeParsers();
  server.addContentTypeParser("*", bodies.parse);
  server.decorateRequest("caller", null);
  server.addHook("onRequest", (request, reply, done) => {
    reply.raw.on("close", () => bodies.release(request.raw));
    // Before the body is read, which nothing would use.
    if (request.is404) {
      sendError(reply, noRoute(request));
    } else {
      done();
    }
  });
  // Its hooks answer first; without it a body would have no parser.
  server.setNotFoundHandler((request, reply) =>
    sendError(reply, noRoute(request)),
  );
  server.setErrorHandler((error, request, reply) =>
    sendError(
      reply,
      asCallError(error, request, log),
      request.routeOptions.config.errorBody,
    ),
  );
  return server;
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Where errors of the route have another shape than OpenAI's. */
    readonly errorBody?: (error: CallError) => unknown;
    /** A page's form is sent here; everywhere else a body is JSON whatever its content type says. */
    readonly takesForm?: boolean;
  }
  interface FastifyRequest {
    /** Who asks, known before the body is read; null on routes without a key. */
    caller: Caller | null;
  }
}

/** An unread body up to this size is discarded, and the connection kept. */
const MAX_DISCARDED_BYTES = 1_048_576;

/** Whether a request still sends more than is worth reading. */
function stillSends({ raw, headers }: FastifyRequest): boolean {
  if (raw.complete) {
    return false;
  }
  return (
    headers["transfer-encoding"] !== undefined ||
    Number(headers["content-length"] ?? 0) > MAX_DISCARDED_BYTES
  );
}

function sendError(
  reply: FastifyReply,
  error: CallError,
  bodyOf: (error: CallError) => unknown = errorBody,
): FastifyReply {
  if (stillSends(reply.request)) {
    // Else one more piece of it is read before the connection is closed.
    reply.request.raw.socket.pause();
    reply.header("connection", "close");
  }
  return reply
    .code(statusOf(error))
    .headers(error.details.headers ?? {})
    .type("application/json; charset=utf-8")
    .send(JSON.stringify(bodyOf(error)));
}

function asCallError(
  error: unknown,
  request: FastifyRequest,
  log: Logger,
): CallError {
  if (error instanceof CallError) {
    return error;
  }
  if (error instanceof DatabaseUnavailable) {
    return databaseUnavailable();
  }
  if (error instanceof JournalFull) {
    return new CallError(
      "journal_full",
      "The journal of calls is full or its disk is, so a call would go unrecorded. Free disk space or bring the database back, then try again.",
      { headers: { "retry-after": "10" } },
    );
  }
  const conflict = conflictOf(error);
  if (conflict !== null) {
    return conflict;
  }
  const { code } = error as { code?: string };
  if (code?.startsWith("FST_ERR_CTP") === true) {
    return new CallError(
      "invalid_request",
      "The body could not be read. Send JSON with its right length.",
    );
  }
  log.error(
    { error, route: request.routeOptions.url },
    "a request failed unexpectedly",
  );
  return new CallError(
    "internal",
    "The gateway failed unexpectedly; its log says more. Nothing was charged for what was not answered.",
  );
}

function noRoute(request: FastifyRequest): CallError {
  return new CallError(
    "not_found",
    `There is no route ${request.method} ${pathOf(request)}. See /openapi.json for those there are.`,
  );
}

/** The path without its query: keys travel in some. */
function pathOf(request: FastifyRequest): string {
  return request.url.split("?")[0] ?? request.url;
}
