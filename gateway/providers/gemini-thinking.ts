import { effortOfBudget, leastEffort } from "../dialects/dialect.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import {
  numberOf,
  recordOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";

/** Budgets of the efforts, in tokens, for models before Gemini 3, as https://ai.google.dev/gemini-api/docs/openai has them. */
const BUDGETS: ReadonlyMap<string, number> = new Map([
  ["low", 1_024],
  ["medium", 8_192],
  ["high", 24_576],
]);

/**
 * A body that asks for thinking also asks for its summary, which Gemini leaves out of the answer otherwise, as in LiteLLM. Both
 * are in `thinking_config` then: beside it, `reasoning_effort` is rejected. Anthropic's `thinking` is an effort here.
 */
export function withThoughts(
  body: JsonRecord,
  deployment: PricedDeployment,
): JsonRecord {
  const { thinking, reasoning_effort: given, ...rest } = body;
  const own = recordOf(thinking);
  const effort = effortOf(own, given, deployment);
  const budget = BUDGETS.get(textOf(effort));
  const isSummarized = budget !== undefined || own["type"] === "adaptive";
  const google = googleBody(body);
  const { thinking_config: configured, ...others } = google;
  if (!isSummarized || own["display"] === "omitted") {
    return effort == null
      ? rest
      : {
          ...rest,
          reasoning_effort: effort,
          ...(configured === undefined ? {} : bodyOf(others)),
        };
  }
  const depth =
    budget === undefined
      ? {}
      : isBeforeThree(deployment)
        ? { thinking_budget: budget }
        : { thinking_level: effort };
  const config = { ...recordOf(configured), include_thoughts: true, ...depth };
  return { ...rest, ...bodyOf({ ...google, thinking_config: config }) };
}

/** Gemini's own parameters in a body of chat, of the call or the configuration. */
export function googleBody(body: JsonRecord): JsonRecord {
  return recordOf(recordOf(body["extra_body"])["google"]);
}

export function bodyOf(google: JsonRecord): JsonRecord {
  return { extra_body: { google } };
}

function effortOf(
  { type, budget_tokens: budget }: JsonRecord,
  given: unknown,
  deployment: PricedDeployment,
): unknown {
  // `disable` is LiteLLM's name of it.
  if (type === "disabled" || given === "none" || given === "disable") {
    return leastEffort(deployment);
  }
  return type === "enabled" && given == null
    ? effortOfBudget(numberOf(budget) ?? 0)
    : given;
}

/** Names without a version, such as `gemini-flash-latest`, are those of later models. */
export function isBeforeThree({ model, baseModel }: PricedDeployment): boolean {
  const version = /gemini-(\d+)/.exec(baseModel ?? model)?.[1];
  return version !== undefined && Number(version) < 3;
}

/** An effort as Gemini's own API has it; null: the model decides. */
export function thinkingConfig(
  effort: string,
  deployment: PricedDeployment,
): JsonRecord | null {
  if (effort === "") {
    return null;
  }
  if (!isBeforeThree(deployment)) {
    const isPro = /-pro/.test(deployment.baseModel ?? deployment.model);
    // Only Flash has less than `low`.
    const level = effort === "none" ? "minimal" : effort;
    return { thinkingLevel: isPro && level === "minimal" ? "low" : level };
  }
  const least = effort === "minimal" ? BUDGETS.get("low") : 0;
  return { thinkingBudget: BUDGETS.get(effort) ?? least };
}

const START = "<thought>";
const END = "</thought>";

/**
 * Moves the thinking of a message, or of the pieces of a streamed one in their order, from its text to `reasoning_content`. It
 * stands between tags, and the message or piece is marked; the end tag of a stream comes with the answer's first piece.
 */
export function createThoughts(): (said: JsonRecord) => JsonRecord {
  let isOpen = false;
  return (said) => {
    const text = textOf(said["content"]);
    if (googleIn(said)["thought"] === true) {
      isOpen = !text.includes(END);
      return thoughtApart(said, text);
    }
    if (!isOpen || text === "") {
      return said;
    }
    isOpen = false;
    return text.startsWith(END)
      ? { ...said, content: text.slice(END.length) }
      : said;
  };
}

function thoughtApart(said: JsonRecord, text: string): JsonRecord {
  const { extra_content: extra, ...rest } = said;
  // Sent back with the mark, the answer would be a thought.
  const { thought: _thought, ...google } = googleIn(said);
  const written = text.startsWith(START) ? text.slice(START.length) : text;
  const [thought = "", ...answer] = written.split(END);
  return {
    ...rest,
    content: answer.join(END) || null,
    ...(thought === "" ? {} : { reasoning_content: thought }),
    ...(Object.keys(google).length === 0
      ? {}
      : { extra_content: { ...recordOf(extra), google } }),
  };
}

function googleIn(said: JsonRecord): JsonRecord {
  return recordOf(recordOf(said["extra_content"])["google"]);
}
