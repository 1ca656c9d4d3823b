import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import {
  Refusal,
  Unanswered,
  type AdminApi,
} from "../../supervisor/gateway/admin-api.ts";
import { VIEWED_AT_GATEWAY } from "./route-roles.ts";
import { sendError } from "./send-error.ts";

const PREFIX = "/api/gateway";
const noHead = { exposeHeadRoute: false };
type Method = Parameters<AdminApi["ask"]>[0];

/** The gateway of the console. */
export interface GatewayView {
  /** Where key holders reach it. */
  readonly address: string;
}

/**
 * GET /api/gateway answers the gateway's address. Paths below it are its admin API for commands of signed-in users, who do not
 * have the master key: each request is checked by the table of roles, and the gateway's audit log names the user.
 */
export function registerGatewayRoutes(
  server: FastifyInstance,
  gateway: AdminApi,
  address: string,
): void {
  server.get(PREFIX, noHead, (): GatewayView => ({ address }));
  for (const path of VIEWED_AT_GATEWAY) {
    server.get(`${PREFIX}${path}`, noHead, (request, reply) =>
      pass(gateway, request, reply, path + queryOf(request)),
    );
  }
  const anyPath = (request: FastifyRequest, reply: FastifyReply) => {
    const { url } = request;
    // An address in another spelling, such as /%61pi, has its path elsewhere: the rest could name another host.
    return url.startsWith(`${PREFIX}/`)
      ? pass(gateway, request, reply, url.slice(PREFIX.length))
      : sendError(reply, 404, `${url} not found.`);
  };
  server.get(`${PREFIX}/*`, noHead, anyPath);
  server.post(`${PREFIX}/*`, anyPath);
  server.patch(`${PREFIX}/*`, anyPath);
}

function queryOf({ url }: FastifyRequest): string {
  const at = url.indexOf("?");
  return at === -1 ? "" : url.slice(at);
}

async function pass(
  gateway: AdminApi,
  { method, body }: FastifyRequest,
  reply: FastifyReply,
  path: string,
): Promise<FastifyReply> {
  try {
    const answer = await gateway.ask(
      method as Method,
      path,
      (body ?? undefined) as Parameters<AdminApi["ask"]>[2],
    );
    // Some answers are numbers or lists.
    return await reply
      .type("application/json; charset=utf-8")
      .send(JSON.stringify(answer));
  } catch (error) {
    if (error instanceof Refusal) {
      const { status, message, param } = error;
      return reply
        .code(status)
        .send({ error: { message, param, code: String(status) } });
    }
    if (error instanceof Unanswered) {
      const { message } = error;
      return reply
        .code(502)
        .send({ error: { message, param: null, code: "502" } });
    }
    throw error;
  }
}
