import { event, openaiChat } from "./openai-chat.ts";
import { PROVIDER_SECRET, recordOf, type ProviderFormat } from "./format.ts";

const SAFE = { hate: { filtered: false, severity: "safe" } };

/** Azure OpenAI: OpenAI's bodies with content filter results, behind `api-key` and a dated version. */
export const azureChat: ProviderFormat = {
  ...openaiChat,
  refuse: (headers, url) =>
    headers["api-key"] !== PROVIDER_SECRET ||
    headers.authorization !== undefined
      ? {
          status: 401,
          message: "Access denied due to invalid subscription key.",
        }
      : /^\d{4}-\d{2}-\d{2}/.test(url.searchParams.get("api-version") ?? "")
        ? null
        : { status: 404, message: "Resource not found" },
  answer(reply, body) {
    const answer = openaiChat.answer(reply, body);
    return {
      ...answer,
      prompt_filter_results: [
        { prompt_index: 0, content_filter_results: SAFE },
      ],
      choices: (answer["choices"] as readonly unknown[]).map((choice) => ({
        ...recordOf(choice),
        content_filter_results: SAFE,
      })),
    };
  },
  *stream(reply, body) {
    yield event({
      choices: [],
      created: 0,
      id: "",
      model: "",
      object: "",
      prompt_filter_results: [
        { prompt_index: 0, content_filter_results: SAFE },
      ],
    });
    yield* openaiChat.stream(reply, body);
  },
};
