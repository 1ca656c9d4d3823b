import type { Outcome } from "../../ledger/records.ts";
import type { Usage } from "../../tokens/reported-usage.ts";
import { createHistogram, type Histogram } from "../histogram.ts";

/** LiteLLM's bounds of latencies, in seconds. */
export const LATENCY_BOUNDS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 420,
  600,
];

export interface EndedLitellmCall {
  readonly outcome: Outcome;
  /** Billed, or of the cached answer; null: unknown. */
  readonly usage: Usage | null;
  readonly stream: boolean;
  readonly startedAt: number;
  /** Whether the cache was asked. */
  readonly cacheable: boolean;
  readonly durationMs: number;
  /** Ms of waiting for providers; null: no provider was waited for. */
  readonly waitedMs: number | null;
}

/** Sums of calls with the same labels. Money in dollars, latencies in seconds. */
export class CallTally {
  calls = 0;
  succeeded = 0;
  spend = 0;
  inputTokens = 0;
  outputTokens = 0;
  cachedInputTokens = 0;
  cacheWriteTokens = 0;
  audioInputTokens = 0;
  audioOutputTokens = 0;
  reasoningTokens = 0;
  images = 0;
  cacheHits = 0;
  cacheMisses = 0;
  /** Tokens of answers from the cache. */
  cachedTokens = 0;
  /** null: nothing was observed yet. */
  total: Histogram | null = null;
  provider: Histogram | null = null;
  firstToken: Histogram | null = null;
  overhead: Histogram | null = null;
  perOutputToken: Histogram | null = null;

  add(call: EndedLitellmCall): void {
    const { outcome, usage, cacheable } = call;
    this.calls++;
    this.spend += outcome.spend;
    if (outcome.cacheHit) {
      this.cacheHits++;
      this.cachedTokens += outcome.promptTokens + outcome.completionTokens;
    } else if (cacheable) {
      this.cacheMisses++;
    }
    this.inputTokens += outcome.promptTokens;
    this.outputTokens += outcome.completionTokens;
    if (usage !== null && !outcome.cacheHit) {
      this.cachedInputTokens += usage.cachedInputTokens;
      this.cacheWriteTokens += usage.cacheWriteTokens;
      this.audioInputTokens += usage.audioInputTokens;
      this.audioOutputTokens += usage.audioOutputTokens;
      this.reasoningTokens += usage.reasoningTokens;
      this.images += usage.images ?? 0;
    }
    if (outcome.status === "success") {
      this.succeeded++;
      this.#observe(call);
    }
  }

  #observe({
    outcome,
    stream,
    startedAt,
    durationMs,
    waitedMs,
  }: EndedLitellmCall): void {
    this.total ??= createHistogram(LATENCY_BOUNDS);
    this.total.observe(durationMs / 1_000);
    if (stream && outcome.firstTokenAt !== null) {
      this.firstToken ??= createHistogram(LATENCY_BOUNDS);
      this.firstToken.observe((outcome.firstTokenAt - startedAt) / 1_000);
    }
    if (waitedMs === null) {
      return;
    }
    this.provider ??= createHistogram(LATENCY_BOUNDS);
    this.provider.observe(waitedMs / 1_000);
    this.overhead ??= createHistogram(LATENCY_BOUNDS);
    this.overhead.observe(Math.max(0, durationMs - waitedMs) / 1_000);
    if (outcome.completionTokens > 0) {
      this.perOutputToken ??= createHistogram(LATENCY_BOUNDS);
      this.perOutputToken.observe(waitedMs / 1_000 / outcome.completionTokens);
    }
  }
}
