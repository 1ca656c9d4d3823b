import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ADMIN_ROUTES } from "../admin/routes.ts";
import type { Gateway } from "../gateway.ts";
import { deleteFromCache, flushCache, pingCache } from "../routes/cache.ts";
import { reloadConfig } from "../routes/config.ts";
import { chatCompletions } from "../routes/chat.ts";
import { completions } from "../routes/completions.ts";
import { embeddings } from "../routes/embeddings.ts";
import { health, liveliness, readiness } from "../routes/health.ts";
import { images } from "../routes/images.ts";
import { countTokens, messages } from "../routes/messages.ts";
import { listModels, showModel } from "../routes/models.ts";
import { moderations } from "../routes/moderations.ts";
import { responses } from "../routes/responses.ts";
import { messagesShape } from "../wire/messages.ts";
import { databaseUnavailable, type CallError } from "./errors.ts";

type Handler = (
  gateway: Gateway,
  request: FastifyRequest,
  reply: FastifyReply,
) => unknown;

interface Route {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly handler: Handler;
  /** Where errors have another shape than OpenAI's. */
  readonly errorBody?: (error: CallError) => unknown;
}

/** What clients call; each also without `/v1`. */
const CALLS: readonly Route[] = [
  { method: "POST", path: "/v1/chat/completions", handler: chatCompletions },
  { method: "POST", path: "/v1/completions", handler: completions },
  { method: "POST", path: "/v1/embeddings", handler: embeddings },
  { method: "POST", path: "/v1/responses", handler: responses },
  { method: "POST", path: "/v1/moderations", handler: moderations },
  { method: "POST", path: "/v1/images/generations", handler: images },
  {
    method: "POST",
    path: "/v1/messages",
    handler: messages,
    errorBody: messagesShape.errorBody,
  },
  {
    method: "POST",
    path: "/v1/messages/count_tokens",
    handler: countTokens,
    errorBody: messagesShape.errorBody,
  },
  { method: "GET", path: "/v1/models", handler: listModels },
  { method: "GET", path: "/v1/models/*", handler: showModel as Handler },
];

/** Azure-style clients name the alias in the path. */
const AZURE: readonly Route[] = [
  ["chat/completions", chatCompletions] as const,
  ["completions", completions] as const,
  ["embeddings", embeddings] as const,
].map(([path, handler]) => ({
  method: "POST",
  path: `/openai/deployments/:deployment/${path}`,
  handler,
}));

const ADMIN: readonly Route[] = [
  ...ADMIN_ROUTES.flatMap(({ name, alsoAt, handler }) => {
    const [method, path = ""] = name.split(" ");
    return [path, ...alsoAt].map((path) => ({
      method: method as Route["method"],
      path,
      handler,
    }));
  }),
  { method: "GET", path: "/health", handler: health as Handler },
  { method: "GET", path: "/cache/ping", handler: pingCache },
  { method: "POST", path: "/cache/delete", handler: deleteFromCache },
  { method: "POST", path: "/cache/flushall", handler: flushCache },
  { method: "POST", path: "/config/reload", handler: reloadConfig },
];

/** Every route of the gateway, in one place. */
export function addRoutes(server: FastifyInstance, gateway: Gateway): void {
  server.get("/health/liveliness", (_request, reply) =>
    reply.type("application/json").send(liveliness()),
  );
  server.get("/health/liveness", (_request, reply) =>
    reply.type("application/json").send(liveliness()),
  );
  server.get("/health/readiness", (_request, reply) =>
    reply.send(readiness(gateway, reply)),
  );
  for (const route of CALLS) {
    add(server, gateway, route);
    add(server, gateway, { ...route, path: route.path.slice("/v1".length) });
  }
  for (const route of [...AZURE, ...ADMIN]) add(server, gateway, route);
}

function add(
  server: FastifyInstance,
  gateway: Gateway,
  { method, path, handler, errorBody }: Route,
): void {
  server.route({
    method,
    url: path,
    config: errorBody === undefined ? {} : { errorBody },
    handler: (request, reply) => {
      if (!gateway.database.ready()) throw databaseUnavailable();
      return handler(gateway, request, reply);
    },
  });
}
