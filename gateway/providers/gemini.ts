import type { CallBody } from "../calls/body.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { createGeminiStream, geminiAnswer } from "./gemini-answer.ts";
import { signatureIn, signatureOf } from "./gemini-signature.ts";
import {
  bodyOf,
  googleBody,
  isBeforeThree,
  withThoughts,
} from "./gemini-thinking.ts";
import {
  isRecord,
  listOf,
  present,
  recordOf,
  recordsOf,
  type JsonRecord,
} from "../../core/json.ts";
import { openaiRequest } from "./openai.ts";
import { openaiWire } from "./openai-wire.ts";
import type { ProviderWire } from "./wire.ts";

/**
 * Gemini through its OpenAI-compatible endpoint. Differences: it rejects unknown fields, omits thinking from
 * `completion_tokens`, has it in the text of an answer, omits `index` from streamed tool calls, and requires its thought signatures
 * to be sent back.
 */
export const geminiWire: ProviderWire = {
  ...openaiWire,
  speaks: (endpoint) =>
    endpoint === "chat" || endpoint === "embeddings" || endpoint === "images",
  unsupported: (endpoint, body) =>
    endpoint === "chat"
      ? [
          ...Object.entries(present(body))
            .filter(([name, value]) => isRefused(name, value, body))
            .map(([name]) => name),
          ...otherTools(body),
        ]
      : [],
  request: (endpoint, body, deployment, stream) =>
    endpoint === "chat"
      ? chatRequest(body, deployment, stream)
      : openaiWire.request(endpoint, body, deployment, stream),
  answer: (endpoint, bytes, sent) =>
    endpoint === "chat"
      ? geminiAnswer(bytes)
      : openaiWire.answer(endpoint, bytes, sent),
  stream: () => createGeminiStream(),
};

/** Fields of OpenAI and others that are rejected with 400 (`Unknown name "…": Cannot find field`). */
const REFUSED = new Set([
  "logit_bias",
  "logprobs",
  "top_logprobs",
  "prediction",
  "audio",
  "moderation",
  "web_search_options",
  "verbosity",
  "functions",
  "function_call",
  "top_k",
  "safety_settings",
]);
/** Fields that do not affect the answer: omitted silently. */
const HINTS = new Set([
  "store",
  "user",
  "safety_identifier",
  "prompt_cache_key",
  "prompt_cache_options",
  "prompt_cache_retention",
  "service_tier",
  "metadata",
]);

function isRefused(name: string, value: unknown, body: CallBody): boolean {
  // SDKs send it for structured answers, with one tool that has to be called; LiteLLM omits it there, too.
  if (name === "parallel_tool_calls") {
    return value === false && recordsOf(body["tools"]).length !== 1;
  }
  if (!REFUSED.has(name) || value === false || value === 0) {
    return false;
  }
  // Without options, a search is asked for nevertheless.
  return !(
    isRecord(value) &&
    Object.keys(value).length === 0 &&
    name !== "web_search_options"
  );
}

/** Tools that are not functions: the endpoint has no search, which LiteLLM has as `{"googleSearch": {}}`, and no other tool of Google's. */
function otherTools(body: CallBody): readonly string[] {
  return listOf(body["tools"]).flatMap((tool, index) => {
    if (isFunction(tool)) {
      return [];
    }
    const { type, ...rest } = recordOf(tool);
    const name = type ?? Object.keys(rest)[0] ?? "no type";
    return [`tools[${index}] (${String(name)})`];
  });
}

function isFunction(tool: unknown): boolean {
  return isRecord(recordOf(tool)["function"]);
}

export function chatRequest(
  body: CallBody,
  deployment: PricedDeployment,
  stream: boolean,
): JsonRecord {
  const sent = Object.fromEntries(
    Object.entries(ownFields(body, deployment, stream)).filter(
      ([name]) =>
        !REFUSED.has(name) &&
        !HINTS.has(name) &&
        name !== "parallel_tool_calls",
    ),
  );
  if (Array.isArray(sent["tools"])) {
    const functions = sent["tools"].filter(isFunction);
    sent["tools"] = functions.map(withoutDialect);
    if (functions.length === 0) {
      delete sent["tools"];
      delete sent["tool_choice"];
    }
  }
  // Thinking, which a body of chat does not have, may carry a signature.
  const given = listOf(body["messages"]);
  return isBeforeThree(deployment)
    ? sent
    : {
        ...sent,
        messages: listOf(sent["messages"]).map((message, at) =>
          signed(message, recordOf(given[at])["thinking_blocks"]),
        ),
      };
}

/** Gemini's own parameters of the call join the configured ones. Its `thinking_config` says more than an effort, beside which it is rejected. */
function ownFields(
  body: CallBody,
  deployment: PricedDeployment,
  stream: boolean,
): JsonRecord {
  const asked = openaiRequest("chat", body, deployment, stream);
  const called = googleBody(body);
  if (Object.keys(called).length === 0) {
    return withThoughts(asked, deployment);
  }
  const google = { ...googleBody(deployment.defaults), ...called };
  if (called["thinking_config"] == null) {
    return withThoughts({ ...asked, ...bodyOf(google) }, deployment);
  }
  const { thinking: _thinking, reasoning_effort: _effort, ...rest } = asked;
  return { ...rest, ...bodyOf(google) };
}

/** A tool without the dialect of its schema, which MCP servers and Claude Code name, and Gemini has rejected as an unknown field. */
function withoutDialect(tool: unknown): unknown {
  const called = isRecord(tool) ? tool["function"] : null;
  const parameters = isRecord(called) ? called["parameters"] : null;
  if (!isRecord(tool) || !isRecord(called) || !isRecord(parameters)) {
    return tool;
  }
  const { $schema: _dialect, $id: _id, ...schema } = parameters;
  return { ...tool, function: { ...called, parameters: schema } };
}

/** Google's documented placeholder for a lost signature. */
const LOST_SIGNATURE = "skip_thought_signature_validator";

/**
 * Gemini 3 rejects a history in which the first tool call of a turn lacks its thought signature, and most clients of OpenAI's
 * shape do not keep one. https://ai.google.dev/gemini-api/docs/thought-signatures
 */
function signed(message: unknown, thinking: unknown): unknown {
  if (!isRecord(message) || !Array.isArray(message["tool_calls"])) {
    return message;
  }
  const [first, ...others] = message["tool_calls"] as readonly unknown[];
  if (!isRecord(first)) {
    return message;
  }
  if (signatureOf(first) !== "") {
    return message;
  }
  const extra = recordOf(first["extra_content"]);
  const withSignature = {
    ...first,
    extra_content: {
      ...extra,
      google: {
        ...recordOf(extra["google"]),
        thought_signature: signatureIn(thinking) ?? LOST_SIGNATURE,
      },
    },
  };
  return { ...message, tool_calls: [withSignature, ...others] };
}
