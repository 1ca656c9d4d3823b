import { ServerResponse, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { WebSocketServer, type ServerOptions, type WebSocket } from "ws";
import type { ClientConnections } from "../../core/client-connections.ts";
import { CallError } from "./errors.ts";

/** How long a client may take to confirm a close; a gateway that stops waits for it. */
const CLOSE_TIMEOUT_MS = 5_000;

/** A connection whose request asks for a WebSocket. */
interface Upgrade {
  readonly connection: Socket;
  /** What the client sent after its request. */
  readonly head: Buffer;
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>();

export function asksForSocket({
  method,
  headers,
}: Pick<IncomingMessage, "method" | "headers">): boolean {
  return method === "GET" && headers.upgrade?.toLowerCase() === "websocket";
}

/** Leads requests for WebSockets to their routes, as any other request: rejections are answered alike. */
export function routeUpgrades(
  server: FastifyInstance,
  clients: Pick<ClientConnections, "upgraded">,
): void {
  server.server.on(
    "upgrade",
    (request: IncomingMessage, connection: Socket, head: Buffer) => {
      clients.upgraded(connection);
      connection.on("error", () => connection.destroy());
      upgrades.set(request, { connection, head });
      const response = new ServerResponse(request);
      response.shouldKeepAlive = false;
      response.assignSocket(connection);
      // Half closed, it would be open until its client closes it, too.
      response.once("finish", () => connection.destroySoon());
      server.routing(request, response);
    },
  );
}

/** Accepts the WebSockets that routes permit. */
export class SocketAcceptor {
  readonly #server: WebSocketServer;

  /** `maxBytes`: of one message; the socket of a longer one is closed with 1009. */
  constructor(maxBytes: number) {
    // Its types do not have the last one.
    const options: ServerOptions & { readonly closeTimeout: number } = {
      noServer: true,
      clientTracking: false,
      maxPayload: maxBytes,
      // Compressed messages would not be bounded by what was received of them.
      perMessageDeflate: false,
      closeTimeout: CLOSE_TIMEOUT_MS,
    };
    this.#server = new WebSocketServer(options);
  }

  /**
   * Makes the connection of a request a WebSocket. Throws 426 if the request does not ask for one, and 403 if a page of another
   * site does: only a browser would let it.
   */
  accept(
    request: FastifyRequest,
    reply: FastifyReply,
    onOpen: (socket: WebSocket, connection: Socket) => void,
  ): void {
    const upgrade = upgradeOf(request);
    rejectOtherSites(request);
    const { connection, head } = upgrade;
    reply.hijack();
    reply.raw.detachSocket(connection);
    this.#server.handleUpgrade(request.raw, connection, head, (socket) =>
      onOpen(socket, connection),
    );
  }
}

function upgradeOf({ raw }: FastifyRequest): Upgrade {
  const upgrade = upgrades.get(raw);
  if (upgrade === undefined) {
    throw new CallError(
      "upgrade_required",
      "GET is for WebSockets here: connect with a WebSocket client, or send the call with POST.",
      { headers: { upgrade: "websocket" } },
    );
  }
  return upgrade;
}

/** Some clients that are no browsers send the origin of the gateway itself. */
function rejectOtherSites({ headers, host }: FastifyRequest): void {
  const { origin } = headers;
  if (origin === undefined) {
    return;
  }
  const site = URL.canParse(origin) ? new URL(origin).host : null;
  if (site !== host && site !== headers.host) {
    throw new CallError(
      "permission_denied",
      "Pages of other sites may not open a WebSocket here: connect from a program, without an `Origin` header.",
    );
  }
}
