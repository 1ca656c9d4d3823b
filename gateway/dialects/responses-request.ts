import type { CallBody } from "../calls/body.ts";
import { invalidParam } from "../http/errors.ts";
import { listOf, numberOf, present, recordOf } from "../../core/json.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import type { ChatBody } from "./client-shape.ts";
import { dialectOf } from "./dialect.ts";
import { leadingInstructions } from "./leading-instructions.ts";
import { inputMessages } from "./responses-input.ts";
import {
  chatChoiceOf,
  chatToolsOf,
  searchOptionsOf,
} from "./responses-tools.ts";

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

const LOGPROBS = "message.output_text.logprobs";

/** A body of OpenAI's Responses API as one of its chat. */
export function chatBodyOf(
  body: CallBody,
  deployment: PricedDeployment,
): ChatBody {
  rejectUnreadable(body);
  const lacks: string[] = [];
  const lack = (path: string) => void lacks.push(path);
  const dialect = dialectOf(deployment);
  const tools = chatToolsOf(body, dialect, lack);
  const text = recordOf(body["text"]);
  if ((numberOf(body["top_logprobs"]) ?? 0) > 0) {
    lack("top_logprobs");
  }
  if (listOf(body["include"]).includes(LOGPROBS)) {
    lack(`include (${LOGPROBS})`);
  }
  // An answer without its results would look like one that was not flagged.
  if (body["moderation"] != null) {
    lack("moderation");
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
    tool_choice: tools.length === 0 ? null : chatChoiceOf(body, lack),
    parallel_tool_calls:
      tools.length === 0 ? null : body["parallel_tool_calls"],
    web_search_options: searchOptionsOf(body, dialect, lack),
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
    throw invalidParam(
      "prompt",
      `refers to a stored prompt, which the provider of ${body.model} does not support. Send its text in \`instructions\` and \`input\`.`,
    );
  }
  const { input } = body;
  if (typeof input === "string" || Array.isArray(input)) {
    return;
  }
  throw invalidParam("input", "must be a string or a list of items.");
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
