import { mergedUsage, usageFromAnthropic } from "./anthropic-usage.ts";
import { numberOf, recordOf, type JsonRecord } from "../../core/json.ts";
import type { AnswerFacts } from "./wire.ts";

/** Collects what is billed from events of Anthropic's shape. */
export function createFactReader() {
  let usage: JsonRecord = {};
  let outputKnown = false;
  let responseId: string | null = null;
  const texts: string[] = [];
  return {
    read(event: JsonRecord): void {
      const message = recordOf(event["message"]);
      if (typeof message["id"] === "string") {
        responseId ??= message["id"];
      }
      usage = mergedUsage(usage, message["usage"] ?? event["usage"]);
      // The first event reports output tokens before any were generated.
      if (numberOf(recordOf(event["usage"])["output_tokens"]) !== null) {
        outputKnown = true;
      }
      const started = recordOf(event["content_block"]);
      const delta = recordOf(event["delta"]);
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
