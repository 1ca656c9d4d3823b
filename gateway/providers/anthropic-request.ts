import type { CallBody } from "../calls/body.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { contextManagement } from "./anthropic-betas.ts";
import { contentBlocks, type Lack } from "./anthropic-content.ts";
import { conversationOf } from "./anthropic-messages.ts";
import { forGeneration } from "./anthropic-generation.ts";
import { maxOutputTokens, traitsOf } from "./anthropic-model.ts";
import { anthropicSchema } from "./anthropic-schema.ts";
import { signedMessages } from "./anthropic-signed.ts";
import { lostThoughts, thinkingAndSampling } from "./anthropic-thinking.ts";
import { readToolOptions } from "./anthropic-tools.ts";
import { isNeutral } from "./neutral-values.ts";
import {
  isRecord,
  numberOf,
  present,
  recordOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";

/** Used when neither caller, deployment nor catalogue gives a maximum: Anthropic requires one. */
const DEFAULT_MAX_TOKENS = 4_096;

interface AnthropicRequest {
  readonly sent: JsonRecord;
  /** Parameters of the caller that Anthropic does not support, by path. */
  readonly lacks: readonly string[];
}

/** Parameters that are translated below. */
const TRANSLATED = new Set([
  "model",
  "messages",
  "stream",
  "stream_options",
  "max_tokens",
  "max_completion_tokens",
  "temperature",
  "top_p",
  "top_k",
  "stop",
  "stop_sequences",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "web_search_options",
  "response_format",
  "reasoning_effort",
  "thinking",
  "output_config",
  "system",
  "user",
  "safety_identifier",
  "metadata",
  "service_tier",
]);
/** Anthropic's own parameters, passed unchanged. */
const NATIVE = [
  "cache_control",
  "container",
  "context_management",
  "diagnostics",
  "inference_geo",
  "mcp_servers",
  "speed",
];
/** Hints for OpenAI's servers that do not affect the answer. */
const HINTS = new Set([
  "prompt_cache_key",
  "prompt_cache_options",
  "prompt_cache_retention",
]);

/** A chat body of OpenAI's shape for Anthropic's `/v1/messages`. Never throws; unsupported parameters are listed. */
export function anthropicRequest(
  body: CallBody,
  deployment: PricedDeployment,
  stream: boolean,
): AnthropicRequest {
  const lacks: string[] = [];
  const lack: Lack = (path) => void lacks.push(path);
  const params = { ...deployment.defaults, ...present(body) };
  for (const [name, value] of Object.entries(present(body))) {
    if (!isKnown(name) && !isHarmless(name, value)) {
      lack(name);
    }
  }

  const traits = traitsOf(deployment.baseModel ?? deployment.model);
  const { system, turns } = conversationOf(params["messages"], lack, traits);
  const { tools, toolChoice, forced } = readToolOptions(params, lack, traits);
  const format = formatOf(params["response_format"], lack);
  const maxTokens = maxTokensOf(body, deployment);
  const { fields, effort, refused } = thinkingAndSampling({
    params,
    traits,
    maxTokens: numberOf(maxTokens) ?? DEFAULT_MAX_TOKENS,
    toolForced: forced,
    thoughtsLost: lostThoughts(turns),
  });
  for (const name of refused) {
    if (body[name] != null) {
      lack(name);
    }
  }
  const outputConfig = present({
    effort,
    format: format.schema,
    ...recordOf(params["output_config"]),
  });
  const systemBlocks = [
    ...contentBlocks(params["system"], "system", lack),
    ...system,
    ...format.instruction,
  ];
  const sent = present({
    model: deployment.model,
    max_tokens: maxTokens,
    system: systemBlocks.length === 0 ? null : systemBlocks,
    messages: turns,
    tools: tools.length === 0 ? null : tools,
    tool_choice: toolChoice,
    ...fields,
    output_config: Object.keys(outputConfig).length === 0 ? null : outputConfig,
    stop_sequences: stopSequences(params, lack),
    metadata: metadataOf(params),
    service_tier: serviceTier(params["service_tier"], lack),
    ...Object.fromEntries(NATIVE.map((name) => [name, params[name]])),
    context_management: contextManagement(params["context_management"]),
    stream: stream ? true : null,
  });
  return { sent, lacks };
}

function isKnown(name: string): boolean {
  return TRANSLATED.has(name) || NATIVE.includes(name) || HINTS.has(name);
}

/** Whether a value is equivalent to the default. */
function isHarmless(name: string, value: unknown): boolean {
  return name === "modalities"
    ? Array.isArray(value) && value.every((one) => one === "text")
    : isNeutral(name, value);
}

function maxTokensOf(body: CallBody, deployment: PricedDeployment): unknown {
  const { defaults } = deployment;
  return (
    body["max_completion_tokens"] ??
    body["max_tokens"] ??
    defaults["max_completion_tokens"] ??
    defaults["max_tokens"] ??
    maxOutputTokens(deployment) ??
    DEFAULT_MAX_TOKENS
  );
}

const JSON_INSTRUCTION =
  "Answer with one valid JSON object and nothing else: no other text, no code fence.";

/** A schema becomes Anthropic's structured output; a JSON object without a schema only gets the instruction. */
function formatOf(
  format: unknown,
  lack: Lack,
): {
  readonly schema: JsonRecord | null;
  readonly instruction: readonly JsonRecord[];
} {
  const { type, json_schema: jsonSchema } = recordOf(format);
  if (format === undefined || type === "text") {
    return { schema: null, instruction: [] };
  }
  const schema = recordOf(jsonSchema)["schema"];
  if (type === "json_schema" && isRecord(schema)) {
    return {
      schema: { type: "json_schema", schema: anthropicSchema(schema) },
      instruction: [],
    };
  }
  if (type === "json_object" || type === "json_schema") {
    return {
      schema: null,
      instruction: [{ type: "text", text: JSON_INSTRUCTION }],
    };
  }
  lack("response_format");
  return { schema: null, instruction: [] };
}

function stopSequences(params: JsonRecord, lack: Lack): unknown {
  const requested = [params["stop"], params["stop_sequences"]].flat();
  const texts = requested.filter((stop) => textOf(stop) !== "");
  // A stop sequence of white space alone is rejected.
  const kept = texts.filter((stop) => textOf(stop).trim() !== "");
  if (kept.length < texts.length) {
    lack("stop");
  }
  return kept.length === 0 ? null : kept;
}

/** Anthropic supports one field of metadata: an opaque id of the end user. */
function metadataOf(params: JsonRecord): JsonRecord | null {
  const userId =
    recordOf(params["metadata"])["user_id"] ??
    params["user"] ??
    params["safety_identifier"];
  return typeof userId === "string" && userId !== ""
    ? { user_id: userId }
    : null;
}

function serviceTier(tier: unknown, lack: Lack): string | null {
  switch (tier) {
    case undefined:
      return null;
    case "auto":
    case "standard_only":
      return tier;
    case "default":
      return "standard_only";
    default:
      lack("service_tier");
      return null;
  }
}

/**
 * A body of Anthropic's shape: the model's name is replaced, thinking without a signature and what another generation of models takes are
 * left out, and of the metadata only the end user's id is sent.
 */
export function nativeRequest(
  body: CallBody,
  deployment: PricedDeployment,
): JsonRecord {
  const metadata = metadataOf({ metadata: body["metadata"] });
  const { metadata: _ours, ...rest } = {
    ...nativeDefaults(deployment),
    ...body,
  };
  const messages = signedMessages(rest["messages"]);
  return {
    ...forGeneration({ ...rest, messages }, deployment),
    ...(metadata === null ? {} : { metadata }),
    model: deployment.model,
  };
}

/** A deployment's defaults, which have the names of chat, as Anthropic's parameters. */
function nativeDefaults(deployment: PricedDeployment): JsonRecord {
  const { model, defaults } = deployment;
  if (Object.keys(defaults).length === 0) {
    return defaults;
  }
  const { sent } = anthropicRequest({ model }, deployment, false);
  const { model: _model, messages: _none, system: _format, ...rest } = sent;
  return rest;
}

/** The fields that are counted; others are rejected. https://platform.claude.com/docs/en/api/messages-count-tokens */
const COUNTED = new Set([
  "messages",
  "system",
  "tools",
  "tool_choice",
  "thinking",
  "cache_control",
  "output_config",
  "output_format",
  "speed",
  "context_management",
  "compaction",
  "mcp_servers",
]);

/** A body of the route that counts tokens. */
export function countRequest(
  body: CallBody,
  deployment: PricedDeployment,
): JsonRecord {
  const messages = signedMessages(body["messages"]);
  const counted = Object.entries(
    forGeneration({ ...body, messages }, deployment),
  ).filter(([name]) => COUNTED.has(name));
  return { ...Object.fromEntries(counted), model: deployment.model };
}
