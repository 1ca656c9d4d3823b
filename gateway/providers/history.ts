import type { PricedDeployment } from "../routing/catalog.ts";
import {
  isRecord,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { imageOf } from "./chat-image.ts";
import { isMistral } from "./mistral.ts";
import { withDetails } from "./reasoning-details.ts";
import { isOpenAi } from "./responses-request.ts";

/** Whether a provider takes a field. */
type Keeps = (name: string, value: unknown) => boolean;

/** What an assistant's messages and their tool calls may have. */
interface Taken {
  readonly message: Keeps;
  readonly call: Keeps;
}

const all: Keeps = () => true;
const except =
  (...names: readonly string[]): Keeps =>
  (name) =>
    !names.includes(name);
/** Some take a field but not its `null`, which SDKs write for what an answer lacks. */
const only =
  (...names: readonly string[]): Keeps =>
  (name, value) =>
    names.includes(name) && (value !== null || name === "content");

/** Fields of the gateway's own translations. */
const OWN = ["thinking_blocks", "provider_blocks"];

const BY_ANY_SERVER: Taken = { message: except(...OWN), call: all };
const BY_OPENAI: Taken = {
  message: except(
    ...OWN,
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "extra_content",
  ),
  call: except("extra_content", "index"),
};
const CALL = only("id", "type", "function");
const BY_MISTRAL: Taken = {
  message: only("role", "content", "tool_calls", "prefix"),
  call: CALL,
};

/** Providers that reject messages with any other field, also with those that they send themselves. */
const BY_STRICT: ReadonlyMap<string, Taken> = new Map([
  [
    "groq",
    {
      message: only("role", "content", "tool_calls", "reasoning"),
      call: CALL,
    },
  ],
  [
    "cerebras",
    { message: only("role", "content", "name", "tool_calls"), call: CALL },
  ],
  [
    "gemini",
    {
      message: only("role", "content", "name", "tool_calls", "extra_content"),
      call: only("id", "type", "function", "extra_content"),
    },
  ],
]);

/**
 * A history without what the provider rejects, and with what it requires: clients send answers back as they came, perhaps from another
 * provider, and most without their reasoning. The same list if nothing changes.
 */
export function knownHistory(
  messages: readonly unknown[],
  deployment: PricedDeployment,
): readonly unknown[] {
  const { providerName } = deployment;
  const taken = takenBy(deployment);
  const reasoned = requiresReasoning(deployment);
  const known = messages.map((message) => {
    if (!isRecord(message)) {
      return message;
    }
    if (message["role"] !== "assistant") {
      // https://github.com/BerriAI/litellm/issues/6696, https://console.groq.com/docs/openai
      const isNamed = taken !== BY_MISTRAL && providerName !== "groq";
      const shown = withImages(message);
      return !isNamed && message["role"] !== "tool"
        ? kept(shown, except("name"))
        : shown;
    }
    const written = inItsWords(message, providerName);
    return withKnownCalls(
      kept(reasoned ? withReasoning(written) : written, taken.message),
      taken.call,
    );
  });
  return known.every((message, at) => message === messages[at])
    ? messages
    : known;
}

function takenBy(deployment: PricedDeployment): Taken {
  if (isMistral(deployment)) {
    return BY_MISTRAL;
  }
  const { provider, providerName } = deployment;
  const strict = BY_STRICT.get(provider) ?? BY_STRICT.get(providerName);
  const isOpenAis =
    isOpenAi(deployment) ||
    (providerName === "openai" && OF_OPENAI.test(nameOf(deployment)));
  return strict ?? (isOpenAis ? BY_OPENAI : BY_ANY_SERVER);
}

/** Models of OpenAI, also behind a proxy; other servers of the provider `openai` have models of their own. */
const OF_OPENAI = /^(gpt-(?!oss)|chatgpt|o\d)/;

/**
 * Models that reject a history in which an answer lacks its reasoning.
 * https://api-docs.deepseek.com/guides/thinking_mode, https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model
 */
const REASONED = /^(deepseek-(v4|chat|reasoner)|kimi-)/;

function requiresReasoning(deployment: PricedDeployment): boolean {
  return deployment.provider === "openai" && REASONED.test(nameOf(deployment));
}

function nameOf({ baseModel, model }: PricedDeployment): string {
  return baseModel ?? model;
}

/** A lost reasoning is a space: an empty text counts as none. */
function withReasoning(message: JsonRecord): JsonRecord {
  return textOf(message["reasoning_content"]) === ""
    ? {
        ...message,
        reasoning_content: textOf(message["reasoning"]) || " ",
      }
    : message;
}

/** Reasoning by the name that a provider reads. */
function inItsWords(message: JsonRecord, providerName: string): JsonRecord {
  switch (providerName) {
    case "openrouter":
      return withDetails(message);
    case "ollama": {
      const { reasoning_content: reasoning, ...rest } = message;
      return typeof reasoning === "string" ? { reasoning, ...rest } : message;
    }
    default:
      return message;
  }
}

/** OpenAI rejects an image that is its address alone. */
function withImages(message: JsonRecord): JsonRecord {
  const { content } = message;
  if (
    !Array.isArray(content) ||
    !content.some((part) => typeof recordOf(part)["image_url"] === "string")
  ) {
    return message;
  }
  const parts = recordsOf(content).map((part) =>
    part["type"] === "image_url" ? { ...part, image_url: imageOf(part) } : part,
  );
  return { ...message, content: parts };
}

function withKnownCalls(message: JsonRecord, keeps: Keeps): JsonRecord {
  const calls = message["tool_calls"];
  if (!Array.isArray(calls)) {
    return message;
  }
  const known = calls.map((call: unknown) =>
    isRecord(call) ? kept(call, keeps) : call,
  );
  return known.every((call, at) => call === calls[at])
    ? message
    : { ...message, tool_calls: known };
}

function kept(fields: JsonRecord, keeps: Keeps): JsonRecord {
  const entries = Object.entries(fields);
  return entries.every(([name, value]) => keeps(name, value))
    ? fields
    : Object.fromEntries(entries.filter(([name, value]) => keeps(name, value)));
}
