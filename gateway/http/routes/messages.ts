import { z } from "zod";
import { callerOf } from "../../access/authenticate.ts";
import { authorizeRoute } from "../../access/authorize.ts";
import { authorizeModel } from "../../access/models.ts";
import { out } from "../../admin/kinds/out.ts";
import type { CallBody } from "../../calls/body.ts";
import type { CallKind } from "../../calls/call.ts";
import { forwardedOf } from "../../calls/request-headers.ts";
import { countTokensOf } from "../../calls/count-tokens.ts";
import { METADATA_FIELDS } from "../../calls/metadata.ts";
import { modelOf, validateBody } from "../../calls/validate.ts";
import { messagesShape } from "../../dialects/messages.ts";
import { CallError } from "../errors.ts";
import { route } from "../route.ts";
import { anthropicMessage } from "./call-answers.ts";
import { callRoute, numberOf } from "./chat.ts";

const message = z.looseObject({ role: z.string() });

const messagesBody = z.looseObject({
  model: z.string(),
  messages: z.array(message).min(1),
  /** 0: the prompt is only written to the cache of the provider. */
  max_tokens: z.int().min(0),
  stream: z.boolean().nullish(),
  temperature: z.number().nullish(),
  tools: z.array(z.looseObject({})).nullish(),
  ...METADATA_FIELDS,
});

const MESSAGES: CallKind = {
  route: "POST /v1/messages",
  callType: "anthropic_messages",
  endpoint: "messages",
  streams: true,
  shape: messagesShape,
  schema: messagesBody,
  prepare: rejectThread,
  countInput: (gateway, body, model) => gateway.tokens.countChat(body, model),
  estimateOutput: (_gateway, body) => numberOf(body, "max_tokens") ?? 0,
};

/**
 * A thread has its earlier messages at the provider, where no other deployment, guardrail or estimate finds them. SDKs send all
 * messages after this error.
 */
function rejectThread(body: CallBody): void {
  if (body["thread"] != null) {
    throw new CallError(
      "invalid_request",
      "`thread` is not supported: omit it, and send all messages of the conversation.",
      { param: "thread", code: "thread_unsupported_request" },
    );
  }
}

/** POST /v1/messages, Anthropic's API; native where the provider supports it, else translated to chat. */
export const messages = callRoute(MESSAGES, {
  summary: "Chat with a model (Anthropic's API).",
  answer: anthropicMessage,
  errorBody: messagesShape.errorBody,
});

const countBody = z.looseObject({
  model: z.string(),
  messages: z.array(message).min(1),
});

/** POST /v1/messages/count_tokens */
export const countTokens = route(
  "POST /v1/messages/count_tokens",
  {
    summary:
      "Count the tokens of a prompt: by the provider where it counts them (Anthropic, at no cost), else by an estimate, which says so.",
    input: countBody,
    answer: z.looseObject({
      input_tokens: out.count,
      /** Only in an estimate. */
      estimated: z.literal(true).optional(),
    }),
  },
  async (gateway, request) => {
    const caller = callerOf(request);
    authorizeRoute(caller, "POST /v1/messages/count_tokens");
    const group = authorizeModel(gateway, caller, modelOf(request));
    const body = validateBody(countBody, request.body);
    rejectThread(body);
    const forwarded = forwardedOf(request);
    return countTokensOf(gateway, {
      id: request.id,
      caller,
      group,
      body,
      forwarded,
    });
  },
  { errorBody: messagesShape.errorBody, alsoAt: ["/messages/count_tokens"] },
);
