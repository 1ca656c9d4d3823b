import { mergedUsage, usageFromAnthropic } from "./anthropic-usage.ts";
import { numberOf, recordOf, type JsonRecord } from "./json.ts";
import type { AnswerFacts } from "./wire.ts";

/** Collects what is billed from events of Anthropic's shape. */
export function createFactReader() {
  let usage: JsonRecord = {};
  let outputKnown = false;
  let responseId: string | null = null;
  const texts: string[] = [];
  return {
    read(said: JsonRecord): void {
      const message = recordOf(said["message"]);
      if (typeof message["id"] === "string") {
        responseId ??= message["id"];
      }
      usage = mergedUsage(usage, message["usage"] ?? said["usage"]);
      // The first event counts the output that was not made yet.
      if (numberOf(recordOf(said["usage"])["output_tokens"]) !== null) {
        outputKnown = true;
      }
      const started = recordOf(said["content_block"]);
      const delta = recordOf(said["delta"]);
      for (const piece of [
        started["type"] === "tool_use" ? started["name"] : started["text"],
        delta["text"],
        delta["thinking"],
        delta["partial_json"],
      ]) {
        if (typeof piece === "string" && piece !== "") {
          texts.push(piece);
        }
      }
    },
    usage: () => usage,
    facts(): AnswerFacts {
      const read = usageFromAnthropic(usage);
      const facts = {
        usage: outputKnown ? read : null,
        responseId,
        text: texts.join(""),
      };
      return outputKnown || read === null
        ? facts
        : { ...facts, inputUsage: { ...read, outputTokens: 0 } };
    },
  };
}
