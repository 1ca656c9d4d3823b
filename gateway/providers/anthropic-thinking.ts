import { effortOfBudget } from "../dialects/dialect.ts";
import type { ModelTraits } from "./anthropic-model.ts";
import type { Turn } from "./anthropic-messages.ts";
import {
  isRecord,
  numberOf,
  recordOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";

/** The thinking and sampling parameters to send, and those that the model rejects. */
interface ThinkingAndSampling {
  readonly fields: JsonRecord;
  readonly effort: string | null;
  readonly refused: readonly string[];
}

interface ThinkingOptions {
  readonly params: JsonRecord;
  readonly traits: ModelTraits;
  readonly maxTokens: number;
  /** A tool must be called, which excludes a thinking budget. */
  readonly toolForced: boolean;
  /** A tool loop whose thinking blocks the client did not keep: a thinking budget would be rejected. */
  readonly thoughtsLost: boolean;
}

/** Thinking tokens of an effort, for models that take a budget. */
const BUDGETS: ReadonlyMap<string, number> = new Map([
  ["minimal", 1_024],
  ["low", 1_024],
  ["medium", 4_096],
  ["high", 16_384],
  ["xhigh", 32_768],
  ["max", 32_768],
]);
const OFF = new Set(["disabled", "between_tools"]);
/** Thinking as deep as the effort says, with a summary in the answer. */
const ADAPTIVE = { type: "adaptive", display: "summarized" } as const;
/** The smallest budget that is accepted. */
const MIN_BUDGET = 1_024;

export function thinkingAndSampling(
  options: ThinkingOptions,
): ThinkingAndSampling {
  const { thinking, effort } = thinkingOf(options);
  const { fields, refused } = samplingOf(
    options.params,
    options.traits,
    isRecord(thinking) && !OFF.has(textOf(thinking["type"])),
  );
  return {
    fields: thinking === undefined ? fields : { ...fields, thinking },
    effort,
    refused,
  };
}

function thinkingOf(options: ThinkingOptions): {
  readonly thinking: unknown;
  readonly effort: string | null;
} {
  const { params, traits } = options;
  const effort = params["reasoning_effort"];
  const known = typeof effort === "string" ? effort : null;
  const given = params["thinking"];
  // Anthropic's own parameter is more precise.
  if (given !== undefined) {
    return ownThinking(given, known, options);
  }
  if (known === null) {
    return { thinking: undefined, effort: null };
  }
  return traits.thinking === "adaptive"
    ? adaptive(known, options)
    : { thinking: budget(known, options), effort: null };
}

/** Anthropic's own parameter as the model takes it: it may be that of another generation. */
function ownThinking(
  given: unknown,
  known: string | null,
  options: ThinkingOptions,
): { readonly thinking: unknown; readonly effort: string | null } {
  const { traits } = options;
  const { type, budget_tokens: tokens, ...rest } = recordOf(given);
  const effort =
    traits.thinking === "adaptive" ? effortOf(known, traits) : null;
  switch (type) {
    case "disabled":
    case "between_tools":
      return traits.thinkingOff === null
        ? { thinking: undefined, effort: effort ?? "low" }
        : {
            thinking: { type: traits.thinkingOff },
            // Above it, thinking cannot be off.
            effort: effort === "xhigh" || effort === "max" ? "high" : effort,
          };
    case "enabled":
      return traits.budgets
        ? { thinking: given, effort }
        : {
            thinking: { ...ADAPTIVE, ...rest },
            effort: effort ?? effortOfBudget(numberOf(tokens) ?? 0),
          };
    case "adaptive":
      return traits.thinking === "adaptive"
        ? { thinking: given, effort }
        : { thinking: budget(known ?? "medium", options), effort };
    default:
      return { thinking: given, effort };
  }
}

function adaptive(
  effort: string,
  { traits, toolForced }: ThinkingOptions,
): { readonly thinking: unknown; readonly effort: string | null } {
  if (effort === "none") {
    return traits.thinkingOff === null
      ? { thinking: undefined, effort: "low" }
      : { thinking: { type: traits.thinkingOff }, effort: null };
  }
  return {
    thinking: toolForced ? undefined : ADAPTIVE,
    effort: effortOf(effort, traits),
  };
}

function effortOf(effort: string | null, traits: ModelTraits): string | null {
  if (effort === "minimal") {
    return "low";
  }
  if (effort === "xhigh" && !traits.xhigh) {
    return "high";
  }
  return effort === "none" ? null : effort;
}

function budget(effort: string, options: ThinkingOptions): unknown {
  const { maxTokens, toolForced, thoughtsLost } = options;
  const tokensOfEffort = BUDGETS.get(effort);
  if (tokensOfEffort === undefined || toolForced || thoughtsLost) {
    return undefined;
  }
  // The budget counts towards max_tokens and must leave tokens for the answer.
  const tokens = Math.min(tokensOfEffort, Math.floor(maxTokens / 2));
  return tokens < MIN_BUDGET
    ? undefined
    : { type: "enabled", budget_tokens: tokens };
}

/** OpenAI's temperature ranges up to 2, Anthropic's up to 1. */
function samplingOf(
  params: JsonRecord,
  traits: ModelTraits,
  thinks: boolean,
): { readonly fields: JsonRecord; readonly refused: readonly string[] } {
  const fields: Record<string, unknown> = {};
  const refused: string[] = [];
  for (const name of ["temperature", "top_p", "top_k"]) {
    const value = params[name];
    if (value === undefined) {
      continue;
    }
    const number = numberOf(value);
    // 1 is the default of both: omitting it changes nothing.
    if (number === 1 && name !== "top_k" && (thinks || !traits.sampling)) {
      continue;
    }
    const goesWithThinking =
      name === "top_p" && number !== null && number >= 0.95;
    if (!traits.sampling || (thinks && !goesWithThinking)) {
      refused.push(name);
    } else {
      fields[name] =
        name === "temperature" && number !== null
          ? Math.min(1, Math.max(0, number))
          : value;
    }
  }
  if (traits.oneSampler && "temperature" in fields && "top_p" in fields) {
    if (fields["top_p"] === 1) {
      delete fields["top_p"];
    } else if (fields["temperature"] === 1) {
      delete fields["temperature"];
    } else {
      delete fields["top_p"];
      refused.push("top_p");
    }
  }
  return { fields, refused };
}

/** Whether the current turn called tools but lacks the thinking that led to them. */
export function lostThoughts(turns: readonly Turn[]): boolean {
  for (const turn of turns.toReversed()) {
    const types = turn.content.map((block) => recordOf(block)["type"]);
    if (turn.role === "user") {
      if (!types.includes("tool_result")) {
        return false;
      }
    } else if (types.includes("tool_use")) {
      return types[0] !== "thinking" && types[0] !== "redacted_thinking";
    } else {
      return false;
    }
  }
  return false;
}
