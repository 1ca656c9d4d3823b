import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { callerOf } from "../../access/authenticate.ts";
import { authorizeRoute } from "../../access/authorize.ts";
import { authorizeModel } from "../../access/models.ts";
import type { CallKind } from "../../calls/call.ts";
import { STREAM_TYPE } from "../../calls/stream-comments.ts";
import { modelOf, validateBody } from "../../calls/validate.ts";
import { emptyResponse } from "../../dialects/responses-answer.ts";
import type { Gateway } from "../../gateway.ts";
import { sseText } from "../../providers/wire.ts";
import {
  storeResponse,
  ownInput,
  withContext,
} from "../../responses/store-response.ts";
import { openResponse } from "../../responses/open-response.ts";
import type { Turn } from "../../responses/socket/turn.ts";
import { streamInner } from "../inner-request.ts";
import { NO_INPUT, route } from "../route.ts";

const NAME = "GET /v1/responses";

/** GET /v1/responses: a WebSocket, each of whose turns takes all steps of POST /v1/responses. */
export const responsesSocket = route(
  NAME,
  {
    summary:
      "Open a WebSocket for calls of the Responses API, one after the other or side by side (OpenAI's WebSocket mode).",
    input: NO_INPUT,
    answer: z.unknown(),
    status: 101,
  },
  openSocket,
  { alsoAt: ["/responses"] },
);

async function openSocket(
  gateway: Gateway,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const caller = callerOf(request);
  authorizeRoute(caller, NAME);
  authorizeRoute(caller, "POST /v1/responses");
  const { sockets, acceptor } = gateway;
  const key = caller.kind === "key" ? caller.token : "";
  sockets.rejectTooMany(key);
  acceptor.accept(request, reply, (socket, connection) =>
    sockets.serve(key, socket, connection, (message, headers) =>
      streamInner(request, "/v1/responses", message, headers),
    ),
  );
  return reply;
}

/**
 * Answers a turn that generates nothing: what it says can be continued over its WebSocket, and costs nothing. No guardrail has
 * seen it, so it is not stored; the next turn, which has all of it, may be.
 */
export async function answerWarmUp(
  gateway: Gateway,
  request: FastifyRequest,
  reply: FastifyReply,
  kind: CallKind,
  { memory }: Turn,
): Promise<FastifyReply> {
  const caller = callerOf(request);
  authorizeRoute(caller, kind.route);
  authorizeModel(gateway, caller, modelOf(request));
  const body = validateBody(kind.schema, request.body);
  const unstored = { ...body, store: false };
  const opened = await openResponse(gateway, caller, request.id, unstored, {
    memory,
    mayBeEmpty: true,
  });
  const { context } = opened;
  if (context === null) {
    throw new Error("a turn over a WebSocket always has a context");
  }
  const created = Math.floor(Date.now() / 1_000);
  const head = { id: context.id, model: body.model, created };
  const started = withContext(context, emptyResponse(opened.body, head));
  const ended = { ...started, status: "completed", usage: NO_USAGE };
  await storeResponse(gateway, context, opened.body, () => ({
    input: ownInput(context, opened.body),
    response: ended,
    modelId: null,
    session: context.session,
  }));
  const events = [
    { type: "response.created", response: started },
    { type: "response.completed", response: ended },
  ].map((event, sequence_number) => ({
    event: event.type,
    data: JSON.stringify({ ...event, sequence_number }),
  }));
  return reply
    .type(STREAM_TYPE)
    .send(sseText(events.map((event) => ({ ...event, kind: "pass" }))));
}

const NO_USAGE = {
  input_tokens: 0,
  input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
  output_tokens: 0,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 0,
};
