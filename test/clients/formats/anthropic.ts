import {
  listOf,
  PROVIDER_SECRET,
  recordOf,
  type Json,
  type ProviderFormat,
} from "./format.ts";
import {
  MOCK,
  type MockUsage,
  type ModelReply,
  type ModelRequest,
} from "./mock-model.ts";

const SIGNATURE = "EqQBCgIYAhIM1gbcDa9GJwZA2b3h";

function inputUsage({ inputTokens, cachedTokens }: MockUsage): Json {
  return {
    input_tokens: inputTokens - cachedTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cachedTokens,
    cache_creation: {
      ephemeral_5m_input_tokens: 0,
      ephemeral_1h_input_tokens: 0,
    },
    service_tier: "standard",
  };
}

/** https://platform.claude.com/docs/en/api/messages */
export const anthropicMessages: ProviderFormat = {
  refuse: (headers) =>
    headers["x-api-key"] !== PROVIDER_SECRET ||
    headers.authorization !== undefined
      ? { status: 401, message: "invalid x-api-key" }
      : headers["anthropic-version"] === undefined
        ? { status: 400, message: "anthropic-version: header is required" }
        : null,
  mistakeIn,
  parse,
  answer(reply, body) {
    const usage = reply.usage ?? MOCK;
    return {
      ...headOf(reply, body),
      content: blocksOf(reply),
      stop_reason: stopOf(reply),
      usage: { ...inputUsage(usage), output_tokens: usage.outputTokens },
    };
  },
  *stream(reply, body) {
    const usage = reply.usage ?? MOCK;
    yield event({
      type: "message_start",
      message: {
        ...headOf(reply, body),
        content: [],
        stop_reason: null,
        usage: { ...inputUsage(usage), output_tokens: 1 },
      },
    });
    yield event({ type: "ping" });
    for (const [index, { empty, deltas }] of streamedBlocks(reply).entries()) {
      yield event({ type: "content_block_start", index, content_block: empty });
      for (const delta of deltas) {
        yield event({ type: "content_block_delta", index, delta });
      }
      yield event({ type: "content_block_stop", index });
    }
    yield event({
      type: "message_delta",
      delta: { stop_reason: stopOf(reply), stop_sequence: null },
      usage: { output_tokens: usage.outputTokens },
    });
    yield event({ type: "message_stop" });
  },
  error: ({ status, message }) => ({
    type: "error",
    error: { type: typeOf(status), message },
    request_id: "req_played",
  }),
};

function event(data: Json): string {
  return `event: ${String(data["type"])}\ndata: ${JSON.stringify(data)}\n\n`;
}

function headOf({ id = "played" }: ModelReply, body: Json): Json {
  return {
    id: `msg_${id}`,
    type: "message",
    role: "assistant",
    model: body["model"],
    stop_sequence: null,
  };
}

function stopOf({ calls }: ModelReply): string {
  return calls.length === 0 ? "end_turn" : "tool_use";
}

function blocksOf(reply: ModelReply): readonly Json[] {
  return [
    ...(reply.thinking === null
      ? []
      : [{ type: "thinking", thinking: reply.thinking, signature: SIGNATURE }]),
    ...(reply.text.length === 0
      ? []
      : [{ type: "text", text: reply.text.join("") }]),
    ...reply.calls.map(({ id, name, argumentPieces }) => ({
      type: "tool_use",
      id,
      name,
      input: JSON.parse(argumentPieces.join("")) as unknown,
    })),
  ];
}

function streamedBlocks(
  reply: ModelReply,
): readonly { readonly empty: Json; readonly deltas: readonly Json[] }[] {
  return [
    ...(reply.thinking === null
      ? []
      : [
          {
            empty: { type: "thinking", thinking: "", signature: "" },
            deltas: [
              { type: "thinking_delta", thinking: reply.thinking },
              { type: "signature_delta", signature: SIGNATURE },
            ],
          },
        ]),
    ...(reply.text.length === 0
      ? []
      : [
          {
            empty: { type: "text", text: "" },
            deltas: reply.text.map((text) => ({ type: "text_delta", text })),
          },
        ]),
    ...reply.calls.map(({ id, name, argumentPieces }) => ({
      empty: { type: "tool_use", id, name, input: {} },
      deltas: ["", ...argumentPieces].map((partial_json) => ({
        type: "input_json_delta",
        partial_json,
      })),
    })),
  ];
}

const BLOCK_TYPES = new Set([
  "text",
  "image",
  "document",
  "tool_use",
  "tool_result",
  "thinking",
  "redacted_thinking",
]);
const KNOWN = new Set(
  "model messages max_tokens system stream temperature top_p top_k stop_sequences tools tool_choice thinking metadata service_tier output_config container mcp_servers context_management".split(
    " ",
  ),
);

function mistakeIn(body: Json): string | null {
  const unknown = Object.keys(body).find((name) => !KNOWN.has(name));
  if (unknown !== undefined) {
    return `${unknown}: Extra inputs are not permitted`;
  }
  if (!Number.isInteger(body["max_tokens"])) {
    return "max_tokens: Field required";
  }
  const messages = listOf(body["messages"]);
  if (messages[0]?.["role"] !== "user") {
    return 'messages: first message must use the "user" role';
  }
  for (const [index, { role, content }] of messages.entries()) {
    if (role !== "user" && role !== "assistant") {
      return `messages.${index}.role: unexpected role`;
    }
    const wrong = listOf(content).find(
      (block) => !BLOCK_TYPES.has(String(block["type"])),
    );
    if (wrong !== undefined) {
      return `messages.${index}.content: unexpected block`;
    }
  }
  for (const tool of listOf(body["tools"])) {
    if (recordOf(tool["input_schema"])["type"] !== "object") {
      return "tools.0.input_schema.type: Field required";
    }
  }
  return null;
}

function parse(body: Json): ModelRequest {
  const last = listOf(body["messages"]).at(-1)?.["content"];
  const blocks = typeof last === "string" ? [{ text: last }] : listOf(last);
  const system = JSON.stringify(body["system"] ?? "");
  return {
    lastText: blocks.map((block: Json) => String(block["text"] ?? "")).join(""),
    images: blocks.flatMap((block: Json) => {
      const source = recordOf(block["source"]);
      return block["type"] === "image"
        ? [String(source["media_type"] ?? "url")]
        : [];
    }),
    toolNames: listOf(body["tools"]).map(({ name }) => String(name)),
    toolResults: blocks
      .filter((block: Json) => block["type"] === "tool_result")
      .map(({ content }: Json) =>
        typeof content === "string"
          ? content
          : listOf(content)
              .map((part) => String(part["text"]))
              .join(""),
      ),
    wantsJson:
      recordOf(body["output_config"])["format"] !== undefined ||
      system.includes("JSON object"),
    thinks: ["enabled", "adaptive"].includes(
      String(recordOf(body["thinking"])["type"]),
    ),
  };
}

function typeOf(status: number): string {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    case 529:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}
