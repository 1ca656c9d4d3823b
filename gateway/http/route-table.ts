import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { RouteName } from "../access/policy.ts";
import { ADMIN_ROUTES } from "../admin/routes.ts";
import type { Gateway } from "../gateway.ts";
import {
  deleteBody,
  deleteFromCache,
  flushCache,
  pingCache,
  redisInfo,
} from "./routes/cache.ts";
import { chatCompletions } from "./routes/chat.ts";
import { completions } from "./routes/completions.ts";
import { checkConfig, reloadConfig } from "./routes/config.ts";
import { embeddings } from "./routes/embeddings.ts";
import { health, healthQuery } from "./routes/health.ts";
import { images } from "./routes/images.ts";
import { countBody, countTokens, messages } from "./routes/messages.ts";
import { listModels, modelsQuery, showModel } from "./routes/models.ts";
import { metrics } from "./routes/metrics.ts";
import { moderations } from "./routes/moderations.ts";
import { responses } from "./routes/responses.ts";
import { messagesShape } from "../dialects/messages.ts";
import type { CallError } from "./errors.ts";

type Method = "GET" | "POST" | "PATCH" | "DELETE";

type Handler = (
  gateway: Gateway,
  request: FastifyRequest,
  reply: FastifyReply,
) => unknown;

/** A route that needs a key: its name in the policy, and where it answers. */
export interface Route {
  readonly name: RouteName;
  readonly method: Method;
  /** The first is the name's own. */
  readonly paths: readonly string[];
  readonly input: z.ZodType;
  readonly handler: Handler;
  readonly streams: boolean;
  /** Answers before the database was ever there: what tells of trouble must not wait for its end. */
  readonly fromTheStart: boolean;
  /** Takes a key that is no virtual one, and asks for it itself. */
  readonly ownKeys: boolean;
  /** Where errors have another shape than OpenAI's. */
  readonly errorBody?: (error: CallError) => unknown;
}

const NOTHING = z.object({});

function route(
  name: RouteName,
  handler: Handler,
  input: z.ZodType = NOTHING,
  {
    alsoAt = [],
    ...more
  }: Partial<Route> & { alsoAt?: readonly string[] } = {},
): Route {
  const [method, path = ""] = name.split(" ");
  return {
    name,
    method: method as Method,
    paths: [path, ...alsoAt],
    input,
    handler,
    streams: false,
    fromTheStart: false,
    ownKeys: false,
    ...more,
  };
}

type CallHandler = typeof chatCompletions;

/** What clients call; each also without `/v1`, and some as Azure-style clients do, who name the alias in the path. */
function call(
  handler: CallHandler,
  more: Pick<Route, "errorBody"> & { readonly azure?: true } = {},
): Route {
  const { route: name, schema, streams } = handler.kind;
  const { azure, ...rest } = more;
  const path = name.slice(name.indexOf("/v1") + "/v1".length);
  const alsoAt =
    azure === true ? [path, `/openai/deployments/:deployment${path}`] : [path];
  return route(name, handler, schema, { ...rest, streams, alsoAt });
}

const anthropic = { errorBody: messagesShape.errorBody };

/** Every route that needs a key. */
export const ROUTES: readonly Route[] = [
  call(chatCompletions, { azure: true }),
  call(completions, { azure: true }),
  call(embeddings, { azure: true }),
  call(responses),
  call(moderations),
  call(images, { azure: true }),
  call(messages, anthropic),
  route("POST /v1/messages/count_tokens", countTokens, countBody, {
    ...anthropic,
    alsoAt: ["/messages/count_tokens"],
  }),
  route("GET /v1/models", listModels, modelsQuery, { alsoAt: ["/models"] }),
  route("GET /v1/models/*", showModel as Handler, NOTHING, {
    alsoAt: ["/models/*"],
  }),
  ...ADMIN_ROUTES.map(({ name, alsoAt, handler, input }) =>
    route(name, handler, input, { alsoAt }),
  ),
  route("GET /health", health, healthQuery, { fromTheStart: true }),
  route("GET /metrics", metrics, NOTHING, {
    fromTheStart: true,
    ownKeys: true,
  }),
  route("GET /cache/ping", pingCache),
  route("GET /cache/redis/info", redisInfo),
  route("POST /cache/delete", deleteFromCache, deleteBody),
  route("POST /cache/flushall", flushCache),
  route("POST /config/check", checkConfig),
  route("POST /config/reload", reloadConfig),
];
