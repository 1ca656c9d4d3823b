import type { Deployment } from "../config/types.ts";
import { createMargins } from "../pricing/margins.ts";
import { createOutputEstimates } from "./output-estimates.ts";
import { promptContent } from "../ledger/prompt-content.ts";
import { createTokenizers, encodingOf } from "./tokenizers.ts";

/** Counts tokens, and learns from the providers' reports how reliable the counts are. Model names are the providers' own. */
export interface TokenCounter {
  /**
   * Input tokens of a chat, completions, messages or responses body. Cheap on large prompts: those are sampled, with
   * slightly high estimates.
   */
  countChat(body: unknown, model: string): number;
  /** Tokens of a text, which takes two seconds for a megabyte, and no longer for more: for bills where the provider reports no usage. */
  countText(text: string, model: string): number;
  /** Tokens of a text of a caller, whose size no limit has been asked about; as cheap on large ones as `countChat`. */
  estimateText(text: string, model: string): number;
  /** A text, a list of texts, a list of tokens, or a list of those. */
  countEmbeddingInput(input: unknown, model: string): number;
  /** The factor from a count to an estimate at this deployment, from 1 to 4. */
  margin(
    deployment: Pick<Deployment, "id" | "provider" | "providerName">,
  ): number;
  learn(deploymentId: string, counted: number, reported: number): void;
  /**
   * Output tokens that the alias's next answer, or each of its choices or images, will hardly exceed: the 99th percentile of
   * the recent ones, 4,096 before any.
   */
  outputEstimate(alias: string): number;
  recordOutput(alias: string, tokens: number): void;
  /** Loads the tokenizers of these models; without it they load at the first count, which until then is a bound by size. */
  warm(models: Iterable<string>): Promise<void>;
}

/** The initial margin of other tokenizers than OpenAI's: they produce more tokens for the same text. */
const FOREIGN_MARGIN = 1.3;
const OWN_TOKENIZER: ReadonlySet<string> = new Set(["openai", "azure"]);

export function createTokenCounter(): TokenCounter {
  const tokenizers = createTokenizers();
  const outputs = createOutputEstimates();
  const margins = createMargins();
  return {
    countChat(body, model) {
      const { texts, tokens } = promptContent(body, model);
      return tokens + tokenizers.estimate(joined(texts), encodingOf(model));
    },
    countText: (text, model) => tokenizers.count(text, encodingOf(model)),
    estimateText: (text, model) => tokenizers.estimate(text, encodingOf(model)),
    countEmbeddingInput(input, model) {
      const { texts, tokens } = embeddingContent(input);
      return tokens + tokenizers.estimate(joined(texts), encodingOf(model));
    },
    margin: ({ id, providerName }) =>
      margins.margin(id, OWN_TOKENIZER.has(providerName) ? 1 : FOREIGN_MARGIN),
    learn: margins.learn,
    outputEstimate: outputs.estimate,
    recordOutput: outputs.record,
    async warm(models) {
      const encodings = new Set([...models].map(encodingOf));
      await Promise.all(
        [...encodings].map((encoding) => tokenizers.load(encoding)),
      );
    },
  };
}

/** One text, so that many short messages are one count; the separator costs a token for each, as the format itself does. */
function joined(texts: readonly string[]): string {
  return texts.length === 1 ? (texts[0] ?? "") : texts.join("\n");
}

function embeddingContent(input: unknown): {
  readonly texts: readonly string[];
  readonly tokens: number;
} {
  if (typeof input === "string") {
    return { texts: [input], tokens: 0 };
  }
  if (!Array.isArray(input)) {
    return { texts: [], tokens: 0 };
  }
  const texts: string[] = [];
  let tokens = 0;
  for (const item of input) {
    if (typeof item === "string") {
      texts.push(item);
    } else {
      tokens += Array.isArray(item) ? item.length : 1;
    }
  }
  return { texts, tokens };
}
