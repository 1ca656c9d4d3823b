import { gauge, histogram } from "../family.ts";
import type { Histogram } from "../histogram.ts";
import type { CallTally } from "./call-tally.ts";
import { total, type LitellmFamily } from "./litellm-family.ts";
import type { LitellmMetrics, RemainingAtProvider } from "./litellm-metrics.ts";
import type { Metric } from "./metric-labels.ts";
import { histograms, least } from "./projection.ts";
import type { SeriesSet } from "./series.ts";

/** Counters and latencies of calls. */
export function callFamilies(
  metrics: LitellmMetrics,
): readonly LitellmFamily[] {
  const { calls } = metrics;
  const count = (
    metric: Metric,
    help: string,
    value: (tally: CallTally) => number,
  ) => total(metric, help, calls, value);
  return [
    count(
      "litellm_proxy_total_requests_metric",
      "Calls that reached the gateway with a known key.",
      (tally) => tally.calls,
    ),
    count(
      "litellm_proxy_failed_requests_metric",
      "Calls whose client got an error.",
      (tally) => tally.calls - tally.succeeded,
    ),
    count(
      "litellm_llm_api_failed_requests_metric",
      "The same (deprecated by LiteLLM).",
      (tally) => tally.calls - tally.succeeded,
    ),
    count(
      "litellm_requests_metric",
      "Successful calls.",
      (tally) => tally.succeeded,
    ),
    count("litellm_spend_metric", "Dollars spent.", (tally) => tally.spend),
    ...tokenCounts(count),
    ...cacheCounts(count),
    ...latencies(calls),
    ...remaining(metrics.remaining),
  ];
}

type CountFamily = (
  metric: Metric,
  help: string,
  value: (tally: CallTally) => number,
) => LitellmFamily;

function latencies(calls: SeriesSet<CallTally>): readonly LitellmFamily[] {
  const latency = (
    metric: Metric,
    help: string,
    value: (tally: CallTally) => Histogram | null,
  ): LitellmFamily => ({
    metric,
    create: (labels) =>
      histogram(metric, help, () => histograms(calls, labels, value)),
  });
  return [
    latency(
      "litellm_request_total_latency_metric",
      "Seconds from a call's arrival to its recorded end.",
      (tally) => tally.total,
    ),
    latency(
      "litellm_llm_api_latency_metric",
      "Seconds of waiting for providers.",
      (tally) => tally.provider,
    ),
    latency(
      "litellm_llm_api_time_to_first_token_metric",
      "Seconds from a streamed call's arrival to its first text.",
      (tally) => tally.firstToken,
    ),
    latency(
      "litellm_overhead_latency_metric",
      "Seconds that the gateway itself adds to a call.",
      (tally) => tally.overhead,
    ),
    latency(
      "litellm_deployment_latency_per_output_token",
      "Seconds of waiting for providers by output token.",
      (tally) => tally.perOutputToken,
    ),
  ];
}

function tokenCounts(count: CountFamily): readonly LitellmFamily[] {
  return [
    count(
      "litellm_total_tokens_metric",
      "Input and output tokens.",
      (tally) => tally.inputTokens + tally.outputTokens,
    ),
    count(
      "litellm_input_tokens_metric",
      "Input tokens.",
      (tally) => tally.inputTokens,
    ),
    count(
      "litellm_output_tokens_metric",
      "Output tokens.",
      (tally) => tally.outputTokens,
    ),
    count(
      "litellm_input_audio_tokens_metric",
      "Input tokens of audio.",
      (tally) => tally.audioInputTokens,
    ),
    count(
      "litellm_output_audio_tokens_metric",
      "Output tokens of audio.",
      (tally) => tally.audioOutputTokens,
    ),
    count(
      "litellm_output_reasoning_tokens_metric",
      "Output tokens of reasoning.",
      (tally) => tally.reasoningTokens,
    ),
    count(
      "litellm_images_generated_metric",
      "Generated images.",
      (tally) => tally.images,
    ),
  ];
}

function cacheCounts(count: CountFamily): readonly LitellmFamily[] {
  const read = (tally: CallTally) => tally.cachedInputTokens;
  const written = (tally: CallTally) => tally.cacheWriteTokens;
  return [
    count(
      "litellm_cache_hits_metric",
      "Answers from the cache.",
      (tally) => tally.cacheHits,
    ),
    count(
      "litellm_cache_misses_metric",
      "Cacheable calls that were not answered from the cache.",
      (tally) => tally.cacheMisses,
    ),
    count(
      "litellm_cached_tokens_metric",
      "Tokens of answers from the cache.",
      (tally) => tally.cachedTokens,
    ),
    count(
      "litellm_input_cached_tokens_metric",
      "Input tokens read from providers' prompt caches.",
      read,
    ),
    count(
      "litellm_provider_cache_read_input_tokens_metric",
      "Input tokens read from providers' prompt caches.",
      read,
    ),
    count(
      "litellm_input_cache_creation_tokens_metric",
      "Input tokens written to providers' prompt caches.",
      written,
    ),
    count(
      "litellm_provider_cache_creation_input_tokens_metric",
      "Input tokens written to providers' prompt caches.",
      written,
    ),
  ];
}

function remaining(
  set: SeriesSet<RemainingAtProvider>,
): readonly LitellmFamily[] {
  const family = (
    metric: Metric,
    what: keyof RemainingAtProvider,
  ): LitellmFamily => ({
    metric,
    create: (labels) =>
      gauge(
        metric,
        `Remaining ${what} of the provider's limit, as its last answer reported.`,
        () => least(set, labels, (record) => record[what]),
        "min",
      ),
  });
  return [
    family("litellm_remaining_requests_metric", "requests"),
    family("litellm_remaining_requests", "requests"),
    family("litellm_remaining_tokens_metric", "tokens"),
    family("litellm_remaining_tokens", "tokens"),
  ];
}
