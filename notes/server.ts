import { randomBytes } from "node:crypto";
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { MINUTE_MS } from "../core/duration.ts";
import {
  challenge,
  openAuthentication,
  type Authentication,
  type Login,
} from "./auth/authenticate.ts";
import { watchConnections } from "../core/client-connections.ts";
import { corsHeaders, preflightHeaders } from "./http/cors.ts";
import { sendText, type Exchange } from "./http/exchange.ts";
import { dropRest } from "./http/request-body.ts";
import { readTarget } from "./http/target.ts";
import { Refusal, refusalBody, refusalOf } from "./refusal.ts";
import { answerDatabase } from "./routes/database-routes.ts";
import { answerNode } from "./routes/node-routes.ts";
import {
  answerServer,
  COUCHDB_VERSION,
  createDatabase,
  removeDatabase,
  up,
} from "./routes/server-routes.ts";
import { endSession, startSession } from "./routes/session-routes.ts";
import { answerUtils } from "./routes/utils-routes.ts";
import type { ServerContext } from "./routes/context.ts";

const HEADERS_MS = MINUTE_MS;
const CHECK_EVERY_MS = 30_000;

/** Creates the HTTP server of the notes store, not yet listening. The headers of a request must arrive within `headersMs`. */
export function createNotesServer(
  context: ServerContext,
  headersMs = HEADERS_MS,
  maxConnections?: number,
): Server {
  const authentication = openAuthentication(
    context.settings,
    context.databases,
    context.log,
  );
  const server = createServer(
    {
      // No fixed limit for slow uploads; request-body.ts times out stalled ones.
      requestTimeout: 0,
      // Without a limit for requests, Node has by default none for their headers either.
      headersTimeout: headersMs,
      connectionsCheckingInterval: Math.min(CHECK_EVERY_MS, headersMs),
      keepAliveTimeout: 65_000,
      maxHeaderSize: 65_536,
    },
    (request, response) => {
      void serve(context, authentication, request, response);
    },
  );
  watchConnections(server, context.log, maxConnections);
  return server;
}

async function serve(
  context: ServerContext,
  authentication: Authentication,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const requestId = randomBytes(5).toString("hex");
  const origins = context.settings.origins();
  const gone = new AbortController();
  response.on("close", () => {
    if (!response.writableFinished) {
      gone.abort(new Error("the client disconnected"));
    }
  });
  response.setHeader("server", `CouchDB/${COUCHDB_VERSION} (Hearth notes)`);
  response.setHeader("cache-control", "must-revalidate");
  response.setHeader("x-couch-request-id", requestId);
  try {
    const preflight = preflightHeaders(request, origins);
    if (preflight !== undefined) {
      response.writeHead(204, preflight).end();
      return;
    }
    for (const [name, value] of Object.entries(corsHeaders(request, origins))) {
      response.setHeader(name, value);
    }
    await route(context, authentication, request, response, gone.signal);
  } catch (failure) {
    if (gone.signal.aborted) {
      return;
    }
    await refuse(context, request, response, failure, requestId);
  }
}

async function route(
  context: ServerContext,
  authentication: Authentication,
  request: IncomingMessage,
  response: ServerResponse,
  gone: AbortSignal,
): Promise<void> {
  const target = readTarget(request.url ?? "/");
  const method = methodOf(request);
  const isUp = target.segments.join("/") === "_up";
  const login = await authentication.authenticate(request);
  if (target.segments.join("/") === "_session") {
    const session = { request, response, target, authentication };
    if (method === "POST") {
      return await startSession(context, session);
    }
    if (method === "DELETE") {
      return endSession(session);
    }
  }
  if (login?.setCookie !== undefined) {
    response.setHeader("set-cookie", login.setCookie);
  }
  if (login === undefined) {
    // The health check needs no credentials; wrong ones are rejected even here.
    if (isUp && (method === "GET" || method === "HEAD")) {
      await up(context, { response });
      return;
    }
    if (!isUp) {
      throw new Refusal("unauthorized", "Authentication required.", challenge);
    }
  }
  await answer(context, {
    request,
    response,
    method,
    target,
    user: (login ?? ANONYMOUS).user,
    login: login ?? ANONYMOUS,
    gone,
  });
}

const ANONYMOUS: Login = {
  user: { name: "", roles: [] },
  by: "default",
  onEnd: () => () => undefined,
  isCurrent: () => Promise.resolve(true),
};

async function answer(
  context: ServerContext,
  exchange: Exchange,
): Promise<void> {
  const [first, ...rest] = exchange.target.segments;
  if (first === "_utils") {
    return await answerUtils(context, exchange);
  }
  if (first === "_node") {
    return await answerNode(context, exchange);
  }
  if (await answerServer(context, exchange)) {
    return;
  }
  if (rest.length === 0 && exchange.method === "PUT") {
    return await createDatabase(context, exchange);
  }
  if (rest.length === 0 && exchange.method === "DELETE") {
    return await removeDatabase(context, exchange);
  }
  if (MISSING_FEATURES.includes(first!)) {
    throw new Refusal(
      "not_implemented",
      `This notes store does not implement ${first}.`,
    );
  }
  const database = await context.databases.open(first!);
  await answerDatabase(context, { ...exchange, database });
}

/** Endpoints of CouchDB that this store does not implement. */
const MISSING_FEATURES = [
  "_global_changes",
  "_prometheus",
  "_replicator",
  "_reshard",
  "_scheduler",
];

/** Clients behind proxies that allow only GET and POST send the real method in a header. */
function methodOf(request: IncomingMessage): string {
  const override = request.headers["x-http-method-override"];
  return request.method === "POST" && typeof override === "string"
    ? override.toUpperCase()
    : (request.method ?? "GET");
}

async function refuse(
  context: ServerContext,
  request: IncomingMessage,
  response: ServerResponse,
  failure: unknown,
  requestId: string,
): Promise<void> {
  const refusal = refusalOf(failure);
  if (!(failure instanceof Refusal)) {
    context.log.error(
      { err: failure, requestId, method: request.method },
      "request failed",
    );
  }
  if (response.headersSent || request.errored !== null) {
    // The response has started, or the request was interrupted: cut the connection, so that the response is not mistaken for a complete one.
    response.destroy();
    return;
  }
  if (!(await dropRest(request))) {
    response.setHeader("connection", "close");
  }
  sendText(response, refusal.status, refusalBody(refusal), refusal.headers);
}
