import { z } from "zod";
import type { CallKind } from "../../calls/call.ts";
import { METADATA_FIELDS } from "../../calls/metadata.ts";
import { expectedOutput } from "../../calls/expected-output.ts";
import { responsesShape } from "../../dialects/responses.ts";
import { responseAnswer } from "./call-answers.ts";
import { callerOf } from "../../access/authenticate.ts";
import { innerCallOf } from "../../responses/inner-call.ts";
import { openResponse } from "../../responses/open-response.ts";
import { bodyOfFrame } from "../../responses/socket/frames.ts";
import { Turn } from "../../responses/socket/turn.ts";
import { callRoute, carryOut, numberOf } from "./chat.ts";
import { answerInBackground, isInBackground } from "./responses-background.ts";
import { answerWarmUp } from "./responses-socket.ts";

export const responsesBody = z.looseObject({
  model: z.string(),
  input: z.union([z.string(), z.array(z.looseObject({}))], {
    error: "must be a text or a list of items",
  }),
  instructions: z.string().nullish(),
  stream: z.boolean().nullish(),
  max_output_tokens: z.int().min(1).nullish(),
  tools: z.array(z.looseObject({})).nullish(),
  store: z.boolean().nullish(),
  background: z.boolean().nullish(),
  previous_response_id: z.string().nullish(),
  conversation: z
    .union([z.string(), z.looseObject({ id: z.string() })], {
      error: "must be the id of a conversation",
    })
    .nullish(),
  ...METADATA_FIELDS,
});

const RESPONSES: CallKind = {
  route: "POST /v1/responses",
  callType: "aresponses",
  endpoint: "responses",
  streams: true,
  shape: responsesShape,
  schema: responsesBody,
  open(gateway, request, body) {
    const inner = innerCallOf(request.headers);
    return inner?.opened
      ? Promise.resolve(inner.opened)
      : openResponse(gateway, callerOf(request), request.id, body, {
          memory: inner?.memory ?? null,
        });
  },
  countInput: (gateway, body, model) => gateway.tokens.countChat(body, model),
  estimateOutput: (gateway, body, group) =>
    numberOf(body, "max_output_tokens") ?? expectedOutput(gateway, group),
};

/** POST /v1/responses; native where the provider supports it, else translated to chat. */
export const responses = callRoute(
  RESPONSES,
  {
    summary: "Chat with a model (OpenAI's Responses API).",
    answer: responseAnswer,
  },
  async (gateway, request, reply, kind) => {
    const inner = innerCallOf(request.headers);
    if (inner === null && isInBackground(request)) {
      return answerInBackground(gateway, request, reply, kind);
    }
    inner?.answersTo(reply.raw);
    if (inner instanceof Turn) {
      request.body = bodyOfFrame(request.body);
      if (inner.isWarmUp) {
        return answerWarmUp(gateway, request, reply, kind, inner);
      }
    }
    return carryOut(gateway, request, reply, kind);
  },
);
