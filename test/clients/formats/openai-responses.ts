import { listOf, recordOf, type Json, type ProviderFormat } from "./format.ts";
import { openaiChat } from "./openai-chat.ts";
import { MOCK, type ModelRequest, type ModelReply } from "./mock-model.ts";

/** https://platform.openai.com/docs/api-reference/responses */
export const openaiResponses: ProviderFormat = {
  ...openaiChat,
  mistakeIn: (body) =>
    body["messages"] === undefined && body["input"] !== undefined
      ? null
      : "Missing required parameter: 'input'.",
  parse,
  answer: (reply, body) => responseOf(body, "completed", reply),
  *stream(reply, body) {
    let sequence = 0;
    const event = (type: string, fields: Json) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...fields })}\n\n`;
    const created = { response: responseOf(body, "in_progress", reply) };
    yield event("response.created", created);
    yield event("response.in_progress", created);
    for (const [output_index, item] of itemsOf(reply).entries()) {
      const place = { output_index, item_id: item["id"] };
      if (item["type"] === "reasoning") {
        const where = { ...place, summary_index: 0 };
        const text = reply.thinking ?? "";
        const part = (shown: string) => ({ type: "summary_text", text: shown });
        yield event("response.output_item.added", {
          output_index,
          item: { ...item, summary: [], encrypted_content: "" },
        });
        yield event("response.reasoning_summary_part.added", {
          ...where,
          part: part(""),
        });
        yield event("response.reasoning_summary_text.delta", {
          ...where,
          delta: text,
        });
        yield event("response.reasoning_summary_text.done", { ...where, text });
        yield event("response.reasoning_summary_part.done", {
          ...where,
          part: part(text),
        });
      } else if (item["type"] === "message") {
        const part = { type: "output_text", annotations: [], logprobs: [] };
        const whole = { ...part, text: reply.text.join("") };
        yield event("response.output_item.added", {
          output_index,
          item: { ...item, status: "in_progress", content: [] },
        });
        yield event("response.content_part.added", {
          ...place,
          content_index: 0,
          part: { ...part, text: "" },
        });
        for (const delta of reply.text) {
          yield event("response.output_text.delta", {
            ...place,
            content_index: 0,
            delta,
            logprobs: [],
          });
        }
        yield event("response.output_text.done", {
          ...place,
          content_index: 0,
          text: whole.text,
          logprobs: [],
        });
        yield event("response.content_part.done", {
          ...place,
          content_index: 0,
          part: whole,
        });
      } else {
        const call = reply.calls.find(({ id }) => id === item["call_id"]);
        yield event("response.output_item.added", {
          output_index,
          item: { ...item, status: "in_progress", arguments: "" },
        });
        for (const delta of call?.argumentPieces ?? []) {
          yield event("response.function_call_arguments.delta", {
            ...place,
            delta,
          });
        }
        yield event("response.function_call_arguments.done", {
          ...place,
          name: item["name"],
          arguments: item["arguments"],
        });
      }
      yield event("response.output_item.done", { output_index, item });
    }
    yield event("response.completed", {
      response: responseOf(body, "completed", reply),
    });
  },
};

/** What only the provider can read of its reasoning. */
export const ENCRYPTED_REASONING = "c2VjcmV0IHRob3VnaHRz";

function itemsOf(reply: ModelReply): readonly Json[] {
  return [
    ...(reply.thinking === null
      ? []
      : [
          {
            id: `rs_${reply.id ?? "played"}`,
            type: "reasoning",
            summary: [{ type: "summary_text", text: reply.thinking }],
            encrypted_content: ENCRYPTED_REASONING,
          },
        ]),
    ...(reply.text.length === 0
      ? []
      : [
          {
            id: `msg_${reply.id ?? "played"}`,
            type: "message",
            status: "completed",
            role: "assistant",
            content: [
              {
                type: "output_text",
                text: reply.text.join(""),
                annotations: [],
                logprobs: [],
              },
            ],
          },
        ]),
    ...reply.calls.map((call) => ({
      id: `fc_${call.id}`,
      type: "function_call",
      status: "completed",
      call_id: call.id,
      name: call.name,
      arguments: call.argumentPieces.join(""),
    })),
  ];
}

function responseOf(body: Json, status: string, reply: ModelReply): Json {
  const { inputTokens, cachedTokens, outputTokens } = reply.usage ?? MOCK;
  const completed = status === "completed";
  return {
    id: `resp_${reply.id ?? "played"}`,
    object: "response",
    created_at: 1_763_720_000,
    status,
    error: null,
    incomplete_details: null,
    instructions: body["instructions"] ?? null,
    model: body["model"],
    output: completed ? itemsOf(reply) : [],
    parallel_tool_calls: true,
    tool_choice: "auto",
    tools: body["tools"] ?? [],
    text: { format: { type: "text" } },
    metadata: {},
    usage: !completed
      ? null
      : {
          input_tokens: inputTokens,
          input_tokens_details: { cached_tokens: cachedTokens },
          output_tokens: outputTokens,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: inputTokens + outputTokens,
        },
  };
}

function parse(body: Json): ModelRequest {
  const { input } = body;
  const items = typeof input === "string" ? [] : listOf(input);
  const last = items.at(-1) ?? {};
  const parts = listOf(last["content"]);
  const format = recordOf(recordOf(body["text"])["format"])["type"];
  const results = items.filter(({ type }) => type === "function_call_output");
  return {
    lastText:
      typeof input === "string"
        ? input
        : typeof last["content"] === "string"
          ? last["content"]
          : parts.map((part) => String(part["text"] ?? "")).join(""),
    images: parts.flatMap(({ image_url: url }) =>
      typeof url === "string"
        ? [/^data:([^;]+);base64,./.exec(url)?.[1] ?? "url"]
        : [],
    ),
    toolNames: listOf(body["tools"]).map(({ name }) => String(name)),
    toolResults:
      last["type"] === "function_call_output"
        ? results.map(({ output }) => String(output))
        : [],
    wantsJson: format === "json_object" || format === "json_schema",
    thinks: false,
  };
}
