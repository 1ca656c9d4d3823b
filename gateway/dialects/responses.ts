import { errorBody } from "../http/errors.ts";
import type { ClientShape } from "./client-shape.ts";
import { responseAnswer } from "./responses-answer.ts";
import { chatBodyOf } from "./responses-request.ts";
import { ResponsesStream } from "./responses-stream.ts";

/** `/v1/responses`, OpenAI's Responses API, for providers that have only chat. */
export const responsesShape: ClientShape = {
  endpoint: "responses",
  chatBody: chatBodyOf,
  answer: responseAnswer,
  stream: (body, answerId) => new ResponsesStream(body, answerId),
  errorBody,
};
