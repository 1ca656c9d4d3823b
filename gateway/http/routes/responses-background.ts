import type { FastifyReply, FastifyRequest } from "fastify";
import { callerOf } from "../../access/authenticate.ts";
import { authorizeRoute } from "../../access/authorize.ts";
import { authorizeModel } from "../../access/models.ts";
import type { CallBody } from "../../calls/body.ts";
import type { CallKind } from "../../calls/call.ts";
import { modelOf, validateBody } from "../../calls/validate.ts";
import { emptyResponse } from "../../dialects/responses-answer.ts";
import type { Gateway } from "../../gateway.ts";
import { passOn, sendInner, type InnerAnswer } from "../inner-request.ts";
import { BEFORE_FIRST, followResponse } from "./followed-response.ts";
import { Run } from "../../responses/background.ts";
import { ownInput, withContext } from "../../responses/store-response.ts";
import type { ResponseContext } from "../../responses/response-context.ts";
import {
  openResponse,
  type OpenedResponse,
} from "../../responses/open-response.ts";
import type { StoredResponse } from "../../responses/stored-response.ts";

export function isInBackground({ body }: FastifyRequest): boolean {
  return (
    (body as { readonly background?: unknown } | null)?.background === true
  );
}

/**
 * Answers with a stored response that is `queued`, or with its events (`stream`), and goes on without its client. The call takes the steps of any other, as a
 * stream, so that a cancelled one is billed for what was generated. What rejects it before a provider is called is answered at
 * once.
 */
export async function answerInBackground(
  gateway: Gateway,
  request: FastifyRequest,
  reply: FastifyReply,
  kind: CallKind,
): Promise<FastifyReply> {
  const { responses, background } = gateway;
  const caller = callerOf(request);
  authorizeRoute(caller, kind.route);
  authorizeModel(gateway, caller, modelOf(request));
  const body = validateBody(kind.schema, request.body);
  const run = new Run();
  const { context, queued } = await queue(gateway, request, body, run).catch(
    (error: unknown) => {
      run.ended();
      throw error;
    },
  );
  const rejected = await background.start(context.owner, queued, run, () =>
    carryOut(request, run),
  );
  if (rejected === null && body["stream"] === true) {
    return followResponse(
      gateway,
      reply,
      context.owner,
      context.id,
      BEFORE_FIRST,
    );
  }
  if (rejected === null) {
    return reply
      .type("application/json; charset=utf-8")
      .send(JSON.stringify(queued.response));
  }
  await responses.remove(context.owner, context.id);
  return passOn(reply, rejected);
}

/** Stores the response of a run before it starts. */
async function queue(
  gateway: Gateway,
  request: FastifyRequest,
  body: CallBody,
  run: Run,
): Promise<{
  readonly context: ResponseContext;
  readonly queued: StoredResponse;
}> {
  const caller = callerOf(request);
  const opened = await openResponse(gateway, caller, request.id, body, {
    background: run,
  });
  const { context } = opened;
  if (context === null) {
    throw new Error("a response in background is always stored");
  }
  run.opened = { ...opened, body: { ...opened.body, stream: true } };
  const queued = queuedOf(context, opened);
  await gateway.responses.queue(context, queued);
  if (body["stream"] === true) {
    await gateway.background.recordEvents(context.id, queued.response, run);
  }
  return { context, queued };
}

function queuedOf(
  context: ResponseContext,
  { body }: OpenedResponse,
): StoredResponse {
  const created = Math.floor(Date.now() / 1_000);
  const head = { id: context.id, model: body.model, created };
  return {
    id: context.id,
    conversationId: context.conversationId,
    input: ownInput(context, body),
    response: withContext(context, {
      ...emptyResponse(body, head),
      status: "queued",
    }),
    modelId: null,
    session: null,
  };
}

/** As a stream, and without a client that reads it. */
function carryOut(request: FastifyRequest, run: Run): Promise<InnerAnswer> {
  const body = {
    ...(request.body as object),
    background: false,
    stream: true,
  };
  return sendInner(request, "/v1/responses", body, run.headers);
}
