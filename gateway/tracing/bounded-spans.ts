import type { Context } from "@opentelemetry/api";
import { ExportResultCode, type ExportResult } from "@opentelemetry/core";
import {
  BatchSpanProcessor,
  type ReadableSpan,
  type Span,
  type SpanExporter,
  type SpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import type { Logger } from "pino";
import { GEN_AI } from "./attributes.ts";
import type { SpanCounts } from "./traces.ts";

/** Spans that may wait for one collector, including those being sent. */
const MAX_SPANS = 4_096;
/** Of the prompts and answers in them. */
const MAX_CHARACTERS = 16 * 1024 * 1024;
/** Small enough that encoding a batch does not delay calls noticeably. */
const BATCH_SPANS = 128;
const SEND_AFTER_MS = 1_000;

/**
 * The spans of one collector. Unlike the SDK's processor it bounds also those being sent and counts every span: each is
 * exported, dropped or waiting. A collector that hangs therefore costs the memory of its queue and nothing else.
 */
export class BoundedSpans implements SpanProcessor {
  readonly #exporter: CountedExporter;
  readonly #batches: BatchSpanProcessor;
  #overflowed = 0;

  constructor(
    collector: string,
    exporter: SpanExporter,
    timeoutMs: number,
    log: Logger,
  ) {
    this.#exporter = new CountedExporter(collector, exporter, timeoutMs, log);
    this.#batches = new BatchSpanProcessor(this.#exporter, {
      maxQueueSize: MAX_SPANS,
      maxExportBatchSize: BATCH_SPANS,
      scheduledDelayMillis: SEND_AFTER_MS,
      exportTimeoutMillis: 2 * timeoutMs,
    });
  }

  counts(): SpanCounts {
    const { collector, exported, failed, waiting } = this.#exporter;
    return {
      collector,
      exported,
      failed,
      waiting,
      overflowed: this.#overflowed,
    };
  }

  onStart(span: Span, context: Context): void {
    this.#batches.onStart(span, context);
  }

  onEnd(span: ReadableSpan): void {
    if (this.#exporter.accept(span)) {
      this.#batches.onEnd(span);
    } else {
      this.#overflowed++;
    }
  }

  forceFlush(): Promise<void> {
    return this.#batches.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.#batches.shutdown();
  }
}

/** Counts spans from their end until the collector has answered. */
class CountedExporter implements SpanExporter {
  readonly collector: string;
  readonly #exporter: SpanExporter;
  readonly #timeoutMs: number;
  readonly #log: Logger;
  exported = 0;
  failed = 0;
  waiting = 0;
  #characters = 0;
  #isFailing = false;

  constructor(
    collector: string,
    exporter: SpanExporter,
    timeoutMs: number,
    log: Logger,
  ) {
    this.collector = collector;
    this.#exporter = exporter;
    this.#timeoutMs = timeoutMs;
    this.#log = log;
  }

  accept(span: ReadableSpan): boolean {
    const characters = charactersOf(span);
    if (
      this.waiting >= MAX_SPANS ||
      this.#characters + characters > MAX_CHARACTERS
    ) {
      return false;
    }
    this.waiting++;
    this.#characters += characters;
    return true;
  }

  export(spans: ReadableSpan[], resolve: (result: ExportResult) => void): void {
    let isOpen = true;
    const settle = (result: ExportResult) => {
      if (!isOpen) {
        return;
      }
      isOpen = false;
      clearTimeout(deadline);
      this.#settled(spans, result);
      resolve(result);
    };
    // The exporter limits only silence: an answer that never ends would be awaited indefinitely.
    const deadline = setTimeout(
      () =>
        settle({
          code: ExportResultCode.FAILED,
          error: new Error("no complete answer in time"),
        }),
      2 * this.#timeoutMs,
    ).unref();
    this.#exporter.export(spans, settle);
  }

  forceFlush(): Promise<void> {
    return this.#exporter.forceFlush?.() ?? Promise.resolve();
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown();
  }

  #settled(spans: readonly ReadableSpan[], result: ExportResult): void {
    this.waiting -= spans.length;
    for (const span of spans) {
      this.#characters -= charactersOf(span);
    }
    const { collector } = this;
    if (result.code === ExportResultCode.SUCCESS) {
      this.exported += spans.length;
      if (this.#isFailing) {
        this.#log.info({ collector }, "traces are exported again");
      }
      this.#isFailing = false;
      return;
    }
    this.failed += spans.length;
    if (!this.#isFailing) {
      const { message, code } = (result.error ?? {}) as {
        message?: string;
        code?: string | number;
      };
      this.#log.warn(
        { collector, reason: message, code },
        "traces cannot be exported and are dropped; calls are not affected",
      );
    }
    this.#isFailing = true;
  }
}

function charactersOf({ attributes }: ReadableSpan): number {
  const { [GEN_AI.inputMessages]: input, [GEN_AI.outputMessages]: output } =
    attributes;
  return lengthOf(input) + lengthOf(output);
}

function lengthOf(value: unknown): number {
  return typeof value === "string" ? value.length : 0;
}
