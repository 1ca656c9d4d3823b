import type { IncomingHttpHeaders } from "node:http";
import {
  defaultTextMapGetter,
  ROOT_CONTEXT,
  SpanKind,
  trace,
  type Context,
  type Tracer,
} from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOnSampler,
  BasicTracerProvider,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  type Sampler,
} from "@opentelemetry/sdk-trace-base";
import {
  ATTR_SERVICE_NAME,
  ATTR_SERVICE_VERSION,
} from "@opentelemetry/semantic-conventions";
import type { Logger } from "pino";
import type { TracingConfig } from "../config/types.ts";
import { BoundedSpans } from "./bounded-spans.ts";
import { createExporter, shownAddress } from "./collector.ts";
import { operationOf } from "./gen-ai-names.ts";
import { SpansOfCall, startAttributes } from "./spans-of-call.ts";
import type { CallTrace, SpanCounts, TracedCall, Traces } from "./traces.ts";

/** Of one attribute: prompts and answers are cut there. */
const MAX_VALUE_CHARACTERS = 128 * 1024;

/** Traces through OpenTelemetry's SDK. */
export class SdkTraces implements Traces {
  readonly content: boolean;
  readonly #propagator = new W3CTraceContextPropagator();
  readonly #propagate: boolean;
  readonly #collectors: readonly BoundedSpans[];
  readonly #provider: BasicTracerProvider;
  readonly #tracer: Tracer;

  constructor(config: TracingConfig, version: string, log: Logger) {
    this.content = config.content;
    this.#propagate = config.propagate;
    this.#collectors = config.collectors.map(
      (collector) =>
        new BoundedSpans(
          shownAddress(collector.url),
          createExporter(collector),
          collector.timeoutMs,
          log,
        ),
    );
    this.#provider = new BasicTracerProvider({
      resource: resourceFromAttributes({
        ...config.resourceAttributes,
        [ATTR_SERVICE_NAME]: config.serviceName,
        [ATTR_SERVICE_VERSION]: version,
      }),
      sampler: samplerOf(config.sampleRatio),
      spanLimits: { attributeValueLengthLimit: MAX_VALUE_CHARACTERS },
      spanProcessors: [...this.#collectors],
    });
    this.#tracer = this.#provider.getTracer("hearth", version);
  }

  counts(): readonly SpanCounts[] {
    return this.#collectors.map((collector) => collector.counts());
  }

  start(call: TracedCall, headers: IncomingHttpHeaders): CallTrace | null {
    const parent =
      headers["traceparent"] === undefined
        ? ROOT_CONTEXT
        : this.#propagator.extract(ROOT_CONTEXT, headers, defaultTextMapGetter);
    const span = this.#tracer.startSpan(
      `${operationOf(call.callType)} ${call.alias}`,
      { kind: SpanKind.SERVER },
      parent,
    );
    if (!span.isRecording() && !this.#propagate) {
      return null;
    }
    span.setAttributes(startAttributes(call));
    return new SpansOfCall(
      this.#tracer,
      span,
      trace.setSpan(ROOT_CONTEXT, span),
      call,
      this.#propagate ? (context) => this.#headersOf(context) : null,
    );
  }

  close(): Promise<void> {
    return this.#provider.shutdown();
  }

  #headersOf(context: Context): Readonly<Record<string, string>> {
    const headers: Record<string, string> = {};
    this.#propagator.inject(context, headers, {
      set: (carrier, name, value) => {
        // A tracestate that was dropped as too long is empty.
        if (value !== "") {
          carrier[name] = value;
        }
      },
    });
    return headers;
  }
}

/**
 * A caller's trace counts for its ids alone: whether it was sampled there decides nothing here. Spans within a call follow
 * the call's own.
 */
function samplerOf(ratio: number): Sampler {
  const root =
    ratio === 1 ? new AlwaysOnSampler() : new TraceIdRatioBasedSampler(ratio);
  return new ParentBasedSampler({
    root,
    remoteParentSampled: root,
    remoteParentNotSampled: root,
  });
}
