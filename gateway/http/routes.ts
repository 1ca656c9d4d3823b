import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { authenticate } from "../access/authenticate.ts";
import { ruleOf } from "../access/policy.ts";
import { completeCallError } from "../calls/call-error.ts";
import { recordRejection } from "../calls/record-refusal.ts";
import { rejectWithoutRequestsLeft } from "../calls/requests-left.ts";
import type { Gateway } from "../gateway.ts";
import { addPageRoutes } from "../pages/routes.ts";
import { CrossOrigin } from "./cross-origin.ts";
import { databaseUnavailable, type CallError } from "./errors.ts";
import { addDocumentRoutes } from "./openapi/routes.ts";
import { OPEN_ROUTES, ROUTES } from "./route-table.ts";
import type { Route } from "./route.ts";

/** Of a request that changes keys, users or other rows. What it sets stays in the database, the audit log and the memory of all gateways. */
const MAX_MANAGEMENT_BYTES = 4 * 1024 * 1024;

/** Every route of the gateway, in one place. */
export function addRoutes(server: FastifyInstance, gateway: Gateway): void {
  for (const { paths, handler } of OPEN_ROUTES) {
    for (const path of paths) {
      server.get(path, (_request, reply) => handler(gateway, reply));
    }
  }
  addDocumentRoutes(server, gateway);
  addPageRoutes(server, gateway);
  const crossOrigin = new CrossOrigin(gateway.config.server.corsOrigins);
  for (const route of ROUTES) {
    add(server, gateway, route, crossOrigin);
  }
  const asked = ROUTES.filter(isForCallers).flatMap(({ method, paths }) =>
    paths.map((url) => ({ url, method })),
  );
  for (const [url, routes] of Map.groupBy(asked, ({ url }) => url)) {
    const methods = routes.map(({ method }) => method);
    crossOrigin.addPreflight(server, url, methods);
  }
}

/** Whether a key that is only for calls may use it. */
function isForCallers({ name }: Route): boolean {
  return ["llm_api", "any"].includes(ruleOf(name).kind);
}

function add(
  server: FastifyInstance,
  gateway: Gateway,
  route: Route,
  crossOrigin: CrossOrigin,
): void {
  const { name, method, paths, handler, errorBody } = route;
  const { fromTheStart, ownKeys, takesFiles, countsRequests } = route;
  const { kind } = ruleOf(name);
  const isCall = kind === "llm_api";
  const forCallers = isForCallers(route);

  /** Uses the headers only: no byte of the body of a rejected request is read. */
  async function admit(
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<void> {
    if (forCallers) {
      crossOrigin.allow(request, reply);
    }
    if (!fromTheStart && !gateway.database.ready()) {
      throw databaseUnavailable();
    }
    if (ownKeys) {
      return;
    }
    try {
      request.caller = await authenticate(gateway, request.headers);
      if (countsRequests) {
        await rejectWithoutRequestsLeft(gateway, request.caller, request);
      }
    } catch (error) {
      if (isCall) {
        recordRejection(gateway, request, error, name);
      }
      throw error;
    }
  }

  const completeError = (request: FastifyRequest, error: CallError) =>
    completeCallError(gateway, request, error);

  for (const url of paths) {
    server.route({
      method,
      url,
      config: {
        ...(errorBody === undefined ? {} : { errorBody }),
        ...(isCall ? { completeError } : {}),
        ...(takesFiles ? { takesFiles } : {}),
      },
      ...(kind === "management" ? { bodyLimit: MAX_MANAGEMENT_BYTES } : {}),
      onRequest: admit,
      handler: (request, reply) => handler(gateway, request, reply),
    });
  }
}
