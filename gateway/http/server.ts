import {
  fastify,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from "fastify";
import type { Logger } from "pino";
import { DatabaseUnavailable } from "../db/pool.ts";
import { JournalFull } from "../accounting/journal.ts";
import { conflictOf } from "./conflicts.ts";
import {
  CallError,
  databaseUnavailable,
  errorBody,
  statusOf,
} from "./errors.ts";

export interface ServerOptions {
  readonly bodyLimitBytes: number;
  readonly trustedProxies: readonly string[];
  readonly log: Logger;
}

/** The HTTP server without its routes: bodies are JSON whatever their content type says, every error has one shape. */
export function createServer({
  bodyLimitBytes,
  trustedProxies,
  log,
}: ServerOptions): FastifyInstance {
  const server = fastify({
    logger: false,
    bodyLimit: bodyLimitBytes,
    trustProxy: trustedProxies.length === 0 ? false : [...trustedProxies],
    // Streams end in their own time; idle connections are closed by the drain.
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
  server.removeAllContentTypeParsers();
  server.addContentTypeParser(
    "*",
    { parseAs: "buffer" },
    (request, body, done) => {
      if (body.length === 0) return done(null, undefined);
      if (request.routeOptions.config.takesForm === true)
        return done(
          null,
          Object.fromEntries(new URLSearchParams(body.toString("utf8"))),
        );
      try {
        done(null, JSON.parse(body.toString("utf8")));
      } catch (error) {
        done(
          new CallError(
            "invalid_request",
            `The body is not JSON: ${(error as Error).message}.`,
          ),
        );
      }
    },
  );
  server.setNotFoundHandler((request, reply) =>
    sendError(
      reply,
      new CallError(
        "not_found",
        `There is no route ${request.method} ${pathOf(request)}. See /openapi.json for those there are.`,
      ),
    ),
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
}

function sendError(
  reply: FastifyReply,
  error: CallError,
  bodyOf: (error: CallError) => unknown = errorBody,
): FastifyReply {
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
  if (error instanceof CallError) return error;
  if (error instanceof DatabaseUnavailable) return databaseUnavailable();
  if (error instanceof JournalFull)
    return new CallError(
      "journal_full",
      "The journal of calls is full or its disk is, so a call would go unrecorded. Free disk space or bring the database back, then try again.",
      { headers: { "retry-after": "10" } },
    );
  const conflict = conflictOf(error);
  if (conflict !== null) return conflict;
  const { code } = error as { code?: string };
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE")
    return new CallError(
      "body_too_large",
      "The body is larger than this gateway takes. Send a shorter prompt or fewer images.",
    );
  if (code?.startsWith("FST_ERR_CTP") === true)
    return new CallError(
      "invalid_request",
      "The body could not be read. Send JSON with its right length.",
    );
  log.error(
    { error, route: request.routeOptions.url },
    "a request failed unexpectedly",
  );
  return new CallError(
    "internal",
    "The gateway failed unexpectedly; its log says more. Nothing was charged for what was not answered.",
  );
}

/** The path without its query: keys travel in some. */
function pathOf(request: FastifyRequest): string {
  return request.url.split("?")[0] ?? request.url;
}
