import { event, openaiChat } from "./openai-chat.ts";
import { listOf, recordOf, type Json, type ProviderFormat } from "./format.ts";
import { MOCK, type ModelReply } from "./mock-model.ts";

const { inputTokens, outputTokens } = MOCK;
/** Thinking tokens count only in the total. */
const VISIBLE_TOKENS = 5;
const USAGE = {
  prompt_tokens: inputTokens,
  completion_tokens: VISIBLE_TOKENS,
  total_tokens: inputTokens + outputTokens,
};
const KNOWN = new Set(
  "model messages stream stream_options max_tokens max_completion_tokens temperature top_p stop n tools tool_choice response_format reasoning_effort extra_body modalities presence_penalty frequency_penalty seed".split(
    " ",
  ),
);
const THOUGHT = { extra_content: { google: { thought: true } } };
const SIGNATURE = "CuwBAb4+9vsMc2ln";

/** Gemini's OpenAI-compatible endpoint, with its differences. https://ai.google.dev/gemini-api/docs/openai */
export const geminiChat: ProviderFormat = {
  ...openaiChat,
  mistakeIn(body) {
    const unknown = Object.keys(body).find((name) => !KNOWN.has(name));
    if (unknown !== undefined) {
      return `Invalid JSON payload received. Unknown name "${unknown}": Cannot find field.`;
    }
    if (thinkingIn(body) !== undefined && "reasoning_effort" in body) {
      return "Expected one of either `reasoning_effort` or custom `thinking_config`; found both.";
    }
    const unsigned = listOf(body["messages"]).some((message) => {
      const [first] = listOf(message["tool_calls"]);
      const google = recordOf(recordOf(first?.["extra_content"])["google"]);
      return first !== undefined && google["thought_signature"] === undefined;
    });
    return unsigned ? "Function call is missing a thought_signature." : null;
  },
  parse(body) {
    const thinks = recordOf(thinkingIn(body))["include_thoughts"] === true;
    return { ...openaiChat.parse(body), thinks };
  },
  answer: (reply, body) => ({
    choices: [
      {
        finish_reason: "stop",
        index: 0,
        message: {
          role: "assistant",
          ...(reply.thinking === null ? {} : THOUGHT),
          ...contentOf(
            reply.thinking === null
              ? reply.text
              : [`<thought>${reply.thinking}</thought>`, ...reply.text],
          ),
          ...(reply.calls.length === 0 ? {} : { tool_calls: callsOf(reply) }),
        },
      },
    ],
    created: 1_763_720_000,
    id: "gmn-played",
    model: body["model"],
    object: "chat.completion",
    usage: USAGE,
  }),
  *stream(reply, body) {
    const { thinking, text } = reply;
    const thoughts =
      thinking === null
        ? []
        : [{ role: "assistant", content: `<thought>${thinking}`, ...THOUGHT }];
    const [first = "", ...others] = text;
    const texts = thinking === null ? text : [`</thought>${first}`, ...others];
    const pieces: Json[] = [
      ...thoughts,
      ...texts.map((content) => ({ role: "assistant", content })),
      ...callsOf(reply).map((call) => ({
        role: "assistant",
        tool_calls: [call],
      })),
    ];
    for (const [index, delta] of pieces.entries()) {
      const last = index === pieces.length - 1;
      yield event({
        choices: [
          { delta, index: 0, ...(last ? { finish_reason: "stop" } : {}) },
        ],
        created: 1_763_720_000,
        id: "gmn-played",
        model: body["model"],
        object: "chat.completion.chunk",
        usage: last ? USAGE : { ...USAGE, completion_tokens: index + 1 },
      });
    }
    yield "data: [DONE]\n\n";
  },
  error: ({ status, message }) => [
    { error: { code: status, message, status: "FAILED_PRECONDITION" } },
  ],
};

function thinkingIn(body: Json): unknown {
  const { google } = recordOf(body["extra_body"]);
  return recordOf(google)["thinking_config"];
}

function contentOf(pieces: readonly string[]): Json {
  return pieces.length === 0 ? {} : { content: pieces.join("") };
}

function callsOf(reply: ModelReply): readonly Json[] {
  return reply.calls.map((call, index) => ({
    ...(index === 0
      ? { extra_content: { google: { thought_signature: SIGNATURE } } }
      : {}),
    function: { arguments: call.argumentPieces.join(""), name: call.name },
    id: call.id,
    type: "function",
  }));
}
