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
  const json = Buffer.from(JSON.stringify(body));
  return request.server.inject(innerRequest(request, path, json, more));
}

/** As {@link sendInner}, with a body that is JSON already; its answer is read while it arrives. */
export function streamInner(
  request: FastifyRequest,
  path: string,
  json: Buffer,
  more: Readonly<Record<string, string>>,
) {
  return request.server.inject({
    ...innerRequest(request, path, json, more),
    payloadAsStream: true,
  });
}

/** Whether a request was sent by this process to itself. */
export function isInner({ raw }: FastifyReply): boolean {
  return "isLightMyRequest" in raw;
}

/** Headers of the client's request that say nothing of another one. */
const OF_REQUEST =
  /^(connection|content-length|content-type|expect|origin|sec-websocket-.*|transfer-encoding|upgrade)$/;

function innerRequest(
  request: FastifyRequest,
  path: string,
  json: Buffer,
  more: Readonly<Record<string, string>>,
) {
  const sent = Object.entries(request.headers).filter(
    ([name]) => !OF_REQUEST.test(name),
  );
  return {
    method: "POST" as const,
    url: path,
    headers: {
      ...Object.fromEntries(sent),
      "content-type": "application/json",
      ...more,
    },
    payload: Readable.from([json]),
    remoteAddress: request.raw.socket.remoteAddress ?? "",
  };
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
