import { isRecord, listOf, parseJson, recordOf } from "../../core/json.ts";

/** A part of a message in the shape of the GenAI conventions. */
type Part = Readonly<Record<string, unknown>>;

interface Message {
  readonly role: string;
  readonly parts: readonly Part[];
}

/** The prompt of a call as `gen_ai.input.messages`: chat messages, or the texts of `input` and `prompt`. */
export function inputMessages(body: Readonly<Record<string, unknown>>): string {
  const system = body["system"] ?? body["instructions"];
  const { messages, input, prompt } = body;
  return JSON.stringify([
    ...(system === undefined || system === null
      ? []
      : [{ role: "system", parts: partsOf(system) }]),
    ...messagesOf(messages ?? input ?? prompt),
  ]);
}

/** An answer, given as its JSON, as `gen_ai.output.messages`; the text of a stream is a JSON string. */
export function outputMessages(json: string): string {
  return JSON.stringify(answersOf(parseJson(json) ?? json));
}

function messagesOf(value: unknown): readonly Message[] {
  if (!Array.isArray(value) || value.every((one) => typeof one !== "object")) {
    return [{ role: "user", parts: partsOf(value) }];
  }
  return value.map((message: unknown) => {
    const { role = "user", ...rest } = recordOf(message);
    return { role: String(role), parts: partsOfMessage(rest) };
  });
}

function answersOf(answer: unknown): readonly Message[] {
  const { choices, content, output } = recordOf(answer);
  if (Array.isArray(choices)) {
    return choices.map((choice: unknown) => {
      const { message, text } = recordOf(choice);
      return assistant(
        isRecord(message) ? partsOfMessage(message) : partsOf(text),
      );
    });
  }
  if (content !== undefined) {
    return [assistant(partsOf(content))];
  }
  if (Array.isArray(output)) {
    return [
      assistant(output.flatMap((item) => partsOfMessage(recordOf(item)))),
    ];
  }
  return [
    assistant(
      partsOf(typeof answer === "string" ? answer : JSON.stringify(answer)),
    ),
  ];
}

function assistant(parts: readonly Part[]): Message {
  return { role: "assistant", parts };
}

function partsOfMessage(
  message: Readonly<Record<string, unknown>>,
): readonly Part[] {
  const { content, tool_call_id: answered, tool_calls: calls } = message;
  if (answered !== undefined) {
    return [{ type: "tool_call_response", id: answered, response: content }];
  }
  // An item of the Responses API that is no message, such as a function call.
  if (content === undefined && calls === undefined) {
    return [partOf(message)];
  }
  return [...partsOf(content), ...listOf(calls).map(toolCall)];
}

function toolCall(call: unknown): Part {
  const { id, function: called } = recordOf(call);
  const { name, arguments: given } = recordOf(called);
  return { type: "tool_call", id, name, arguments: given };
}

function partsOf(content: unknown): readonly Part[] {
  if (content === undefined || content === null) {
    return [];
  }
  return Array.isArray(content) ? content.map(partOf) : [partOf(content)];
}

/** Images, sounds and files are named by their type only. */
function partOf(part: unknown): Part {
  if (!isRecord(part)) {
    return { type: "text", content: String(part) };
  }
  const { type, text } = part;
  if (typeof text === "string") {
    return { type: "text", content: text };
  }
  switch (type) {
    case "tool_use":
      return {
        type: "tool_call",
        id: part["id"],
        name: part["name"],
        arguments: part["input"],
      };
    case "function_call":
    case "custom_tool_call":
      return {
        type: "tool_call",
        id: part["call_id"],
        name: part["name"],
        arguments: part["arguments"] ?? part["input"],
      };
    case "tool_result":
      return {
        type: "tool_call_response",
        id: part["tool_use_id"],
        response: part["content"],
      };
    case "function_call_output":
    case "custom_tool_call_output":
      return {
        type: "tool_call_response",
        id: part["call_id"],
        response: part["output"],
      };
    default:
      return { type: typeof type === "string" ? type : "unknown" };
  }
}
