import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";

export type InnerAnswer = Awaited<ReturnType<typeof sendInner>>;

/** Sends a client's request through all steps of a request again, in this process, with another body. */
export function sendInner(
  request: FastifyRequest,
  path: string,
  body: object,
  more: Readonly<Record<string, string>> = {},
) {
  const { "content-length": _, ...headers } = request.headers;
  return request.server.inject({
    method: "POST",
    url: path,
    headers: { ...headers, ...more },
    payload: Readable.from([Buffer.from(JSON.stringify(body))]),
    remoteAddress: request.raw.socket.remoteAddress ?? "",
  });
}

/** Of one connection, which is another one. */
const OF_CONNECTION =
  /^(connection|content-length|date|keep-alive|transfer-encoding)$/;

/** Answers the client as the inner request was answered. */
export function passOn(reply: FastifyReply, answer: InnerAnswer): FastifyReply {
  return reply
    .code(answer.statusCode)
    .headers(headersToPass(answer))
    .send(answer.payload);
}

export function headersToPass({
  headers,
}: Pick<InnerAnswer, "headers">): InnerAnswer["headers"] {
  const passed = Object.entries(headers).filter(
    ([name]) => !OF_CONNECTION.test(name),
  );
  return Object.fromEntries(passed);
}
