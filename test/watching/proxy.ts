import {
  createServer,
  request,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { listen } from "../servers/ports.ts";

/** A proxy between a check and its service that can make a healthy service appear unhealthy. */
export interface FaultProxy {
  readonly url: string;
  /** undefined: forwards everything unchanged. */
  readonly fail: (failure: Failure | undefined) => void;
  readonly close: () => Promise<void>;
}

type Failure =
  | { readonly kind: "status"; readonly status: number }
  | { readonly kind: "slow"; readonly ms: number };

export async function startFaultProxy(targetPort: number): Promise<FaultProxy> {
  let failure: Failure | undefined;
  const server = createServer((received, answer) => {
    if (failure?.kind === "status") {
      answer.writeHead(failure.status).end("injected failure");
    } else if (failure?.kind === "slow") {
      setTimeout(() => forward(targetPort, received, answer), failure.ms);
    } else {
      forward(targetPort, received, answer);
    }
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    fail: (next) => {
      failure = next;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function forward(
  port: number,
  received: IncomingMessage,
  answer: ServerResponse,
): void {
  const upstream = request(
    {
      host: "127.0.0.1",
      port,
      method: received.method,
      path: received.url,
      headers: received.headers,
    },
    (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(answer);
    },
  );
  upstream.once("error", () => answer.destroy());
  answer.once("close", () => upstream.destroy());
  received.pipe(upstream);
}
