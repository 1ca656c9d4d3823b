import type { PricedDeployment } from "../routing/catalog.ts";
import {
  parseRecord,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";

export function isMistral({ providerName }: PricedDeployment): boolean {
  return providerName === "mistral" || providerName === "codestral";
}

/** Fields of OpenAI's that do not affect the answer, and that Mistral rejects, as any that it does not know. */
const HINTS = new Set([
  "user",
  "store",
  "safety_identifier",
  "service_tier",
  "prompt_cache_options",
  "prompt_cache_retention",
]);

/** A body with the names of Mistral's API. https://docs.mistral.ai/api */
export function forMistral(
  body: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const { seed, ...rest } = body;
  const sent = Object.fromEntries(
    Object.entries(rest).filter(([name]) => !HINTS.has(name)),
  );
  return seed == null ? sent : { random_seed: seed, ...sent };
}

/**
 * An answer, or a piece of a streamed one, whose content is a list with the thinking of a model, as one with text alone and its
 * `reasoning_content`: OpenAI's clients expect text. Others are the same. https://docs.mistral.ai/capabilities/reasoning
 */
export function thinkingApart(answer: string): string {
  if (!answer.includes('"thinking"')) {
    return answer;
  }
  const parsed = parseRecord(answer);
  const choices = recordsOf(parsed?.["choices"]);
  return choices.some((choice) => thinkingIn(choice).length > 0)
    ? JSON.stringify({ ...parsed, choices: choices.map(choiceApart) })
    : answer;
}

function choiceApart(choice: JsonRecord): JsonRecord {
  const thinking = thinkingIn(choice);
  const name = "message" in choice ? "message" : "delta";
  const said = recordOf(choice[name]);
  return thinking.length === 0
    ? choice
    : {
        ...choice,
        [name]: {
          ...said,
          content: textIn(said["content"]) || null,
          reasoning_content: thinking.map((chunk) => textIn(chunk)).join(""),
        },
      };
}

/** The lists of chunks that a choice thinks. */
function thinkingIn({ message, delta }: JsonRecord): readonly unknown[] {
  return recordsOf(recordOf(message ?? delta)["content"])
    .filter(({ type }) => type === "thinking")
    .map(({ thinking }) => thinking);
}

function textIn(chunks: unknown): string {
  return typeof chunks === "string"
    ? chunks
    : recordsOf(chunks)
        .map(({ text }) => textOf(text))
        .join("");
}
