import type { CallBody } from "../calls/body.ts";
import { CALL_DEFAULT_NAMES } from "../config/schema.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { isWebSearch } from "../dialects/responses-tools.ts";
import { chatInput } from "./chat-responses-input.ts";
import {
  isRecord,
  listOf,
  present,
  recordOf,
  recordsOf,
  type JsonRecord,
} from "../../core/json.ts";
import { changedIn } from "./neutral-values.ts";
import { openaiRequest } from "./openai.ts";
import { isOpenAi, responsesRequest } from "./responses-request.ts";

/** Parameters with the same meaning in both shapes. */
const SAME = [
  "temperature",
  "top_p",
  "top_logprobs",
  "parallel_tool_calls",
  "user",
  "safety_identifier",
  "prompt_cache_key",
  "prompt_cache_options",
  "prompt_cache_retention",
  "service_tier",
  "stream",
];

/** Parameters of chat that the Responses API does not have. */
const LACKING = [
  "n",
  "stop",
  "seed",
  "logit_bias",
  "logprobs",
  "presence_penalty",
  "frequency_penalty",
  "audio",
  "prediction",
  // The Responses API has it, but an answer of chat would lack its results.
  "moderation",
  "functions",
  "function_call",
];

export function lackingInResponses(body: CallBody): readonly string[] {
  const { web_search_options: search } = body;
  return [
    ...changedIn(body, LACKING),
    ...(search == null || isRecord(search) ? [] : ["web_search_options"]),
  ];
}

/** The least that the Responses API accepts as a limit. */
const MIN_OUTPUT_TOKENS = 16;

/** A chat body as one of the Responses API. */
export function responsesBodyOf(
  body: CallBody,
  deployment: PricedDeployment,
): JsonRecord {
  const phases = labelsPhases(deployment);
  const sent = {
    ...parametersOf(body, deployment),
    // Those of the caller: a body of chat has no thinking.
    input: listOf(body["messages"]).flatMap((message) =>
      chatInput(message, phases),
    ),
  };
  return responsesRequest(sent, deployment);
}

/** A deployment whose defaults, which have the names of chat, have those of the Responses API. */
export function withResponsesDefaults(
  deployment: PricedDeployment,
): PricedDeployment {
  const { model, defaults } = deployment;
  if (Object.keys(defaults).length === 0) {
    return deployment;
  }
  const others = Object.entries(defaults).filter(
    ([name]) => !CALL_DEFAULT_NAMES.includes(name),
  );
  return {
    ...deployment,
    defaults: {
      ...Object.fromEntries(others),
      ...parametersOf({ model }, deployment),
    },
  };
}

function parametersOf(
  body: CallBody,
  deployment: PricedDeployment,
): Record<string, unknown> {
  const chat = openaiRequest("chat", body, deployment, false);
  const limit = chat["max_completion_tokens"] ?? chat["max_tokens"];
  const tools = [
    ...recordsOf(chat["tools"]).map(toolOf),
    ...searchTools(chat["web_search_options"]),
  ];
  return present({
    ...Object.fromEntries(SAME.map((name) => [name, chat[name]])),
    model: deployment.model,
    max_output_tokens:
      typeof limit === "number" ? Math.max(limit, MIN_OUTPUT_TOKENS) : limit,
    tools: tools.length === 0 ? null : tools,
    tool_choice: choiceOf(chat["tool_choice"]),
    reasoning: reasoningOf(chat["reasoning_effort"]),
    text: objectOf({
      format: formatOf(recordOf(chat["response_format"])),
      verbosity: chat["verbosity"],
    }),
  });
}

function reasoningOf(effort: unknown): JsonRecord | null {
  return objectOf(isRecord(effort) ? effort : { effort });
}

/** Models since GPT-5.3 answer worse without the labels of what they said. Source: `phase` in OpenAI's SDKs. */
const WITH_PHASES = /^gpt-(5\.([3-9]|\d{2})|[6-9]|\d{2})/;

function labelsPhases(deployment: PricedDeployment): boolean {
  const name = deployment.baseModel ?? deployment.model;
  return isOpenAi(deployment) && WITH_PHASES.test(name);
}

/** null without any fields. */
function objectOf(fields: JsonRecord): JsonRecord | null {
  const given = present(fields);
  return Object.keys(given).length === 0 ? null : given;
}

/** Responses takes a schema for strict unless the tool says otherwise, chat does not. A search is written there as in Responses. */
function toolOf(tool: JsonRecord): JsonRecord {
  const { type, function: called } = tool;
  return isWebSearch(tool)
    ? tool
    : { type, strict: false, ...present(recordOf(called)) };
}

/** https://platform.openai.com/docs/guides/tools-web-search */
function searchTools(options: unknown): readonly JsonRecord[] {
  if (!isRecord(options)) {
    return [];
  }
  const { approximate } = recordOf(options["user_location"]);
  return [
    present({
      type: "web_search",
      search_context_size: options["search_context_size"],
      user_location: isRecord(approximate)
        ? { type: "approximate", ...present(approximate) }
        : null,
    }),
  ];
}

function choiceOf(choice: unknown): unknown {
  const { type, function: called, allowed_tools: allowed } = recordOf(choice);
  switch (type) {
    case "function":
      return { type, name: recordOf(called)["name"] };
    case "allowed_tools": {
      const { mode, tools } = recordOf(allowed);
      return { type, mode, tools: recordsOf(tools).map(choiceOf) };
    }
    default:
      return choice;
  }
}

function formatOf({ type, json_schema: schema }: JsonRecord): unknown {
  return type === undefined ? null : { type, ...recordOf(schema) };
}
