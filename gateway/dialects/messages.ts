import type { ClientShape } from "./client-shape.ts";
import { messageAnswer } from "./messages-answer.ts";
import { messagesErrorOf } from "./messages-error.ts";
import { chatBodyOf } from "./messages-request.ts";
import { MessagesStream } from "./messages-stream.ts";

/** `/v1/messages`, Anthropic's Messages API. */
export const messagesShape: ClientShape = {
  endpoint: "messages",
  chatBody: chatBodyOf,
  answer: messageAnswer,
  stream: (body, _, inputTokens) => new MessagesStream(body, inputTokens),
  errorBody: messagesErrorOf,
};
