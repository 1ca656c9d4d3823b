import type { PricedDeployment } from "../routing/catalog.ts";
import { traitsOf, type ModelTraits } from "./anthropic-model.ts";
import { lostThoughts, thinkingAndSampling } from "./anthropic-thinking.ts";
import {
  isRecord,
  listOf,
  numberOf,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";

/**
 * A body of Anthropic's shape for a model of another generation than the one it was written for, as an alias or a fallback may name:
 * thinking, effort and instructions between messages as that model takes them. The same fields where it takes them already.
 */
export function forGeneration(
  body: JsonRecord,
  { baseModel, model }: PricedDeployment,
): JsonRecord {
  const name = baseModel ?? model;
  // What another server of this format takes is not known.
  if (!/claude/i.test(name)) {
    return body;
  }
  const traits = traitsOf(name);
  const messages = recordsOf(body["messages"]);
  const isInstructed = messages.some(({ role }) => role === "system");
  return {
    ...body,
    ...thinkingFor(body, messages, traits),
    ...(isInstructed && !traits.systemTurns
      ? { messages: listOf(body["messages"]).map(asUser) }
      : {}),
  };
}

/** Turns of one role after another are joined by Anthropic. */
function asUser(message: unknown): unknown {
  return isRecord(message) && message["role"] === "system"
    ? { ...message, role: "user" }
    : message;
}

function thinkingFor(
  body: JsonRecord,
  messages: readonly JsonRecord[],
  traits: ModelTraits,
): JsonRecord {
  const config = recordOf(body["output_config"]);
  const thinking = recordOf(body["thinking"]);
  const given = config["effort"];
  if (isTaken(textOf(thinking["type"]), traits)) {
    return config["effort"] === undefined || takesEffort(textOf(given), traits)
      ? {}
      : withEffort(config, traits.efforts ? "high" : null);
  }
  const { fields, effort } = thinkingAndSampling({
    params: { thinking, reasoning_effort: given },
    traits,
    maxTokens: numberOf(body["max_tokens"]) ?? 0,
    toolForced: ["any", "tool"].includes(
      textOf(recordOf(body["tool_choice"])["type"]),
    ),
    thoughtsLost: lostThoughts(
      messages.map(({ role, content }) => ({
        role: role === "assistant" ? "assistant" : "user",
        content: recordsOf(content),
      })),
    ),
  });
  return {
    thinking: fields["thinking"],
    ...withEffort(config, traits.efforts ? effort : null),
  };
}

function isTaken(type: string, traits: ModelTraits): boolean {
  switch (type) {
    case "adaptive":
      return traits.thinking === "adaptive";
    case "enabled":
      return traits.budgets;
    case "disabled":
    case "between_tools":
      return type === traits.thinkingOff;
    default:
      return true;
  }
}

function takesEffort(effort: string, traits: ModelTraits): boolean {
  return traits.efforts && (effort !== "xhigh" || traits.xhigh);
}

function withEffort(config: JsonRecord, effort: string | null): JsonRecord {
  const { effort: _given, ...rest } = config;
  const known = effort === null ? rest : { ...rest, effort };
  return {
    output_config: Object.keys(known).length === 0 ? undefined : known,
  };
}
