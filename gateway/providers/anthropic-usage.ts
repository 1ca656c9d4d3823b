import {
  usageFromOpenAI,
  type Usage,
  type OtherUsage,
} from "../tokens/reported-usage.ts";
import { tiersIn } from "../pricing/service-tiers.ts";
import {
  numberOf,
  present,
  recordOf,
  recordsOf,
  type JsonRecord,
} from "../../core/json.ts";

/** Anthropic's `usage` in OpenAI's shape: prompt tokens include those read from and written to the cache. */
export function openaiUsage(usage: JsonRecord): JsonRecord {
  const read = numberOf(usage["cache_read_input_tokens"]) ?? 0;
  const written = numberOf(usage["cache_creation_input_tokens"]) ?? 0;
  const input = (numberOf(usage["input_tokens"]) ?? 0) + read + written;
  const output = numberOf(usage["output_tokens"]) ?? 0;
  const thinking = numberOf(
    recordOf(usage["output_tokens_details"])["thinking_tokens"],
  );
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: {
      cached_tokens: read,
      // OpenAI's name, and LiteLLM's older one.
      cache_write_tokens: written,
      cache_creation_tokens: written,
    },
    // Clients made for LiteLLM read these, such as coding agents.
    cache_read_input_tokens: read,
    cache_creation_input_tokens: written,
    ...(thinking === null
      ? {}
      : { completion_tokens_details: { reasoning_tokens: thinking } }),
  };
}

/** The same for the ledger, with the compaction of the context and the advisors; null where there is no usage. */
export function usageFromAnthropic(usage: unknown): Usage | null {
  const reported = withCompaction(recordOf(usage));
  if (
    numberOf(reported["input_tokens"]) === null &&
    numberOf(reported["output_tokens"]) === null
  ) {
    return null;
  }
  const counted = usageFromOpenAI({
    ...openaiUsage(reported),
    server_tool_use: reported["server_tool_use"],
  });
  const forAnHour = writtenForAnHour(reported);
  const tiers = tiersIn(reported);
  const others = advisorsIn(reported);
  return (
    counted && {
      ...counted,
      ...(forAnHour > 0 ? { cacheWrite1hTokens: forAnHour } : {}),
      ...(tiers.length === 0 ? {} : { tiers }),
      ...(others.length === 0 ? {} : { others }),
    }
  );
}

/**
 * Only the start of a stream splits what is written to the cache; after tools of the server, such as searches, its end reports a higher
 * total, whose rest is split in the same way: https://github.com/BerriAI/litellm/issues/42663
 */
function writtenForAnHour(usage: JsonRecord): number {
  const parts = recordOf(usage["cache_creation"]);
  const hour = numberOf(parts["ephemeral_1h_input_tokens"]) ?? 0;
  const minutes = numberOf(parts["ephemeral_5m_input_tokens"]);
  const written = numberOf(usage["cache_creation_input_tokens"]) ?? 0;
  return hour > 0 && minutes !== null && written > hour + minutes
    ? Math.round((written * hour) / (hour + minutes))
    : hour;
}

/**
 * The advisor tool asks another model, billed at its own prices and left out of the totals.
 * https://platform.claude.com/docs/en/agents-and-tools/tool-use/advisor-tool
 */
function advisorsIn(usage: JsonRecord): readonly OtherUsage[] {
  return recordsOf(usage["iterations"]).flatMap(
    ({ type, model, ...iteration }) => {
      const asked =
        type === "advisor_message" ? usageFromAnthropic(iteration) : null;
      return asked === null || typeof model !== "string"
        ? []
        : [{ model, usage: asked }];
    },
  );
}

/**
 * Anthropic bills the calls that summarized the context, and leaves them out of the totals.
 * https://platform.claude.com/docs/en/build-with-claude/compaction
 */
function withCompaction(usage: JsonRecord): JsonRecord {
  const compactions = recordsOf(usage["iterations"]).filter(
    ({ type }) => type === "compaction",
  );
  if (compactions.length === 0) {
    return usage;
  }
  const all = [usage, ...compactions];
  return {
    ...usage,
    ...sums(all, [
      "input_tokens",
      "cache_read_input_tokens",
      "cache_creation_input_tokens",
      "output_tokens",
    ]),
    cache_creation: sums(
      all.map((one) => recordOf(one["cache_creation"])),
      ["ephemeral_1h_input_tokens"],
    ),
  };
}

function sums(
  records: readonly JsonRecord[],
  names: readonly string[],
): JsonRecord {
  return Object.fromEntries(
    names.map((name) => [
      name,
      records.reduce((sum, record) => sum + (numberOf(record[name]) ?? 0), 0),
    ]),
  );
}

const INPUT_COUNTS = [
  "input_tokens",
  "cache_read_input_tokens",
  "cache_creation_input_tokens",
];

/**
 * A stream reports its usage in parts, each cumulative: fields of a later part replace earlier ones. Some compatible servers count the
 * input only in the first part and write zeros in the last: these replace nothing.
 */
export function mergedUsage(earlier: JsonRecord, later: unknown): JsonRecord {
  const usage = present(recordOf(later));
  const hasInput = INPUT_COUNTS.some((name) => numberOf(usage[name]));
  const input = INPUT_COUNTS.flatMap((name) =>
    hasInput || earlier[name] === undefined ? [] : [[name, earlier[name]]],
  );
  return { ...earlier, ...usage, ...Object.fromEntries(input) };
}

/** OpenAI's finish reason. */
export function finishReason(stopReason: unknown): string {
  switch (stopReason) {
    case "max_tokens":
    case "model_context_window_exceeded":
      return "length";
    case "tool_use":
      return "tool_calls";
    case "refusal":
      return "content_filter";
    default:
      return "stop";
  }
}
