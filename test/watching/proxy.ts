import {
  createServer,
  request,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";

/** Stands between a check and what it looks at, so that a healthy service can look sick. */
export interface SickProxy {
  readonly url: string;
  /** undefined: passes everything on as it is. */
  readonly be: (sickness: Sickness | undefined) => void;
  readonly close: () => Promise<void>;
}

export type Sickness =
  | { readonly kind: "status"; readonly status: number }
  | { readonly kind: "slow"; readonly ms: number };

export async function startSickProxy(targetPort: number): Promise<SickProxy> {
  let sickness: Sickness | undefined;
  const server = createServer((asked, answer) => {
    if (sickness?.kind === "status") {
      answer.writeHead(sickness.status).end("sick by order");
    } else if (sickness?.kind === "slow") {
      setTimeout(() => pass(targetPort, asked, answer), sickness.ms);
    } else {
      pass(targetPort, asked, answer);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    be: (next) => {
      sickness = next;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function pass(
  port: number,
  asked: IncomingMessage,
  answer: ServerResponse,
): void {
  const onward = request(
    {
      host: "127.0.0.1",
      port,
      method: asked.method,
      path: asked.url,
      headers: asked.headers,
    },
    (got) => {
      answer.writeHead(got.statusCode ?? 502, got.headers);
      got.pipe(answer);
    },
  );
  onward.once("error", () => answer.destroy());
  answer.once("close", () => onward.destroy());
  asked.pipe(onward);
}
