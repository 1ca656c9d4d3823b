import type { CallBody } from "../calls/body.ts";
import { CallError } from "../http/errors.ts";
import {
  isRecord,
  listOf,
  numberOf,
  present,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../providers/json.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import type { ChatBody } from "./client-shape.ts";
import { dialectOf } from "./dialect.ts";
import { leadingInstructions } from "./leading-instructions.ts";
import { inputMessages } from "./responses-input.ts";

/** Parameters with the same meaning in both shapes. */
const SAME = [
  "temperature",
  "top_p",
  "parallel_tool_calls",
  "user",
  "safety_identifier",
  "prompt_cache_key",
  "service_tier",
  "metadata",
];

/** A body of OpenAI's Responses API as one of its chat. */
export function chatBodyOf(
  body: CallBody,
  deployment: PricedDeployment,
): ChatBody {
  rejectUnreadable(body);
  const lacks: string[] = [];
  const lack = (path: string) => void lacks.push(path);
  const dialect = dialectOf(deployment);
  const tools = toolsOf(body, lack);
  const text = recordOf(body["text"]);
  if ((numberOf(body["top_logprobs"]) ?? 0) > 0) {
    lack("top_logprobs");
  }
  const messages = [
    ...(typeof body["instructions"] === "string"
      ? [{ role: dialect.instructionRole, content: body["instructions"] }]
      : []),
    ...inputMessages(body["input"], dialect, lack),
  ];
  const chat = present({
    ...Object.fromEntries(
      Object.entries(body).filter(([name]) => SAME.includes(name)),
    ),
    messages: dialect.leadingInstructions
      ? leadingInstructions(messages)
      : messages,
    [dialect.maxTokens]: body["max_output_tokens"],
    tools: tools.length === 0 ? null : tools,
    tool_choice: tools.length === 0 ? null : choiceOf(body, lack),
    parallel_tool_calls:
      tools.length === 0 ? null : body["parallel_tool_calls"],
    response_format: formatOf(text["format"]),
    verbosity: text["verbosity"],
    reasoning_effort: recordOf(body["reasoning"])["effort"],
    stream: body["stream"] === true ? true : null,
  });
  return { body: { ...chat, model: body.model }, lacks };
}

/** Prompts are not stored: what requires a stored one is rejected, with an alternative. What was said before is in the input. */
function rejectUnreadable(body: CallBody): void {
  if (body["prompt"] != null) {
    throw new CallError(
      "invalid_request",
      `\`prompt\` refers to a stored prompt, which the provider of ${body.model} does not support. Send its text in \`instructions\` and \`input\`.`,
      { param: "prompt" },
    );
  }
  const { input } = body;
  if (typeof input === "string" || Array.isArray(input)) {
    return;
  }
  throw new CallError(
    "invalid_request",
    "`input` must be a string or a list of items.",
    { param: "input" },
  );
}

function toolsOf(
  body: CallBody,
  lack: (path: string) => void,
): readonly JsonRecord[] {
  return listOf(body["tools"]).flatMap((tool, index) => {
    const { type, name, description, parameters, strict } = recordOf(tool);
    if (type === "function" && typeof name === "string") {
      return [
        {
          type,
          function: present({ name, description, parameters, strict }),
        },
      ];
    }
    lack(`tools[${index}]${typeof type === "string" ? ` (${type})` : ""}`);
    return [];
  });
}

function choiceOf(body: CallBody, lack: (path: string) => void): unknown {
  const choice = body["tool_choice"];
  if (choice == null || typeof choice === "string") {
    return choice;
  }
  if (isRecord(choice)) {
    if (choice["type"] === "function") {
      return { type: "function", function: { name: choice["name"] } };
    }
    if (choice["type"] === "allowed_tools") {
      return {
        type: "allowed_tools",
        allowed_tools: {
          mode: choice["mode"],
          tools: recordsOf(choice["tools"]).map(({ name }) => ({
            type: "function",
            function: { name: textOf(name) },
          })),
        },
      };
    }
  }
  lack("tool_choice");
  return null;
}

function formatOf(format: unknown): unknown {
  const { type, ...schema } = recordOf(format);
  switch (type) {
    case "json_object":
      return { type };
    case "json_schema":
      return { type, json_schema: schema };
    default:
      return null;
  }
}
