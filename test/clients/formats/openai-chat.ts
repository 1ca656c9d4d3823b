import { listOf, PROVIDER_SECRET, recordOf } from "./format.ts";
import type { Json, ProviderFormat } from "./format.ts";
import {
  MOCK,
  type MockUsage,
  type ModelReply,
  type ModelRequest,
} from "./mock-model.ts";

const CREATED = 1_763_720_000;

/** The field `usage` of an answer. */
export function chatUsage({
  inputTokens,
  cachedTokens,
  outputTokens,
}: MockUsage): Json {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
  };
}

/** https://platform.openai.com/docs/api-reference/chat */
export const openaiChat: ProviderFormat = {
  refuse: ({ authorization }) =>
    authorization === `Bearer ${PROVIDER_SECRET}`
      ? null
      : { status: 401, message: "Incorrect API key provided." },
  mistakeIn(body) {
    const foreign = listOf(body["messages"]).findIndex(
      (message) => "thinking_blocks" in message || "provider_blocks" in message,
    );
    if (foreign >= 0) {
      return `Unrecognized field in messages[${foreign}].`;
    }
    return body["stream"] !== true && body["stream_options"] != null
      ? "The 'stream_options' parameter is only allowed when 'stream' is enabled."
      : null;
  },
  parse: parseChat,
  answer: (reply, body) => ({
    id: idOf(reply),
    object: "chat.completion",
    created: CREATED,
    model: body["model"],
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: reply.text.length === 0 ? null : reply.text.join(""),
          refusal: null,
          annotations: [],
          ...(reply.calls.length === 0
            ? {}
            : {
                tool_calls: reply.calls.map((call) => ({
                  id: call.id,
                  type: "function",
                  function: {
                    name: call.name,
                    arguments: call.argumentPieces.join(""),
                  },
                })),
              }),
        },
        logprobs: null,
        finish_reason: finishOf(reply),
      },
    ],
    usage: chatUsage(reply.usage ?? MOCK),
    service_tier: "default",
    system_fingerprint: "fp_played",
  }),
  *stream(reply, body) {
    const chunk = (choices: readonly Json[], usage: unknown = null) =>
      event({
        id: idOf(reply),
        object: "chat.completion.chunk",
        created: CREATED,
        model: body["model"],
        system_fingerprint: "fp_played",
        choices,
        usage,
      });
    const delta = (fields: Json, finish: string | null = null) =>
      chunk([
        { index: 0, delta: fields, logprobs: null, finish_reason: finish },
      ]);
    yield delta({ role: "assistant", content: "", refusal: null });
    for (const content of reply.text) {
      yield delta({ content });
    }
    for (const [index, call] of reply.calls.entries()) {
      yield delta({
        tool_calls: [
          {
            index,
            id: call.id,
            type: "function",
            function: { name: call.name, arguments: "" },
          },
        ],
      });
      for (const piece of call.argumentPieces) {
        yield delta({
          tool_calls: [{ index, function: { arguments: piece } }],
        });
      }
    }
    yield delta({}, finishOf(reply));
    if (recordOf(body["stream_options"])["include_usage"] === true) {
      yield chunk([], chatUsage(reply.usage ?? MOCK));
    }
    yield "data: [DONE]\n\n";
  },
  error: ({ status, message }) => ({
    error: {
      message,
      type: "invalid_request_error",
      param: null,
      code: status,
    },
  }),
};

function idOf({ id = "played" }: ModelReply): string {
  return `chatcmpl-${id}`;
}

export function event(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

function finishOf({ calls }: ModelReply): "stop" | "tool_calls" {
  return calls.length === 0 ? "stop" : "tool_calls";
}

function parseChat(body: Json): ModelRequest {
  const messages = listOf(body["messages"]);
  const last = messages.at(-1) ?? {};
  const parts = listOf(last["content"]);
  const text =
    typeof last["content"] === "string"
      ? last["content"]
      : parts.map((part) => String(part["text"] ?? "")).join("");
  const lastNotTool = messages.findLastIndex(({ role }) => role !== "tool");
  const format = recordOf(body["response_format"])["type"];
  return {
    lastText: text,
    images: parts.flatMap((part) => {
      const url = recordOf(part["image_url"])["url"];
      return typeof url === "string"
        ? [/^data:([^;]+);base64,./.exec(url)?.[1] ?? "url"]
        : [];
    }),
    toolNames: listOf(body["tools"]).map((tool) =>
      String(recordOf(tool["function"])["name"]),
    ),
    toolResults: messages.slice(lastNotTool + 1).map(({ content }) =>
      typeof content === "string"
        ? content
        : listOf(content)
            .map((part) => String(part["text"]))
            .join(""),
    ),
    wantsJson: format === "json_object" || format === "json_schema",
    thinks: false,
  };
}
