// A minimal proxy in Node, for comparison: node:http as the server, undici with keep-alive as the client, unparsed bodies.
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { Pool } from "undici";
import { answerParent } from "./programs.ts";

const [target = ""] = process.argv.slice(2);
const pool = new Pool(target, { pipelining: 1 });

const server = createServer((request, response) => {
  pool
    .stream(
      {
        path: request.url ?? "/",
        method: "POST",
        headers: forwarded(request.headers),
        body: request,
      },
      ({ statusCode, headers }) => {
        response.writeHead(statusCode, forwarded(headers));
        return response;
      },
    )
    .catch(() => response.destroy());
});

/** Removes the headers that apply to one connection only. */
function forwarded(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const {
    host: _,
    connection: __,
    "transfer-encoding": ___,
    ...rest
  } = headers;
  return rest;
}

const listening = new Promise((resolve) =>
  server.listen(0, "127.0.0.1", () => resolve(null)),
);

answerParent(async () => {
  await listening;
  return { port: (server.address() as AddressInfo).port };
});
