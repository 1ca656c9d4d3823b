import { operationOf, providerOf } from "../tracing/gen-ai-names.ts";
import { createHistogram, type Histogram } from "./histogram.ts";
import { joined } from "./labels.ts";

/** Bounds that the GenAI conventions advise, in seconds and in tokens. */
const DURATIONS = Array.from({ length: 14 }, (_, at) => 0.01 * 2 ** at);
const TOKENS = Array.from({ length: 14 }, (_, at) => 4 ** at);

/** What the metrics show of an ended call. */
interface AnsweredCall {
  /** Empty: no provider has answered. */
  readonly provider: string;
  readonly callType: string;
  readonly status: "success" | "failure";
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly durationMs: number;
}

/** One series: seconds, and tokens. */
interface ObservedCalls {
  readonly labels: Readonly<Record<string, string>>;
  readonly duration: Histogram;
  /** null: of failed calls. */
  readonly tokens: {
    readonly input: Histogram;
    readonly output: Histogram;
  } | null;
}

/** OpenTelemetry's GenAI client metrics of calls that a provider has answered, under the names they have in Prometheus. */
export class GenAiMetrics {
  readonly #observed = new Map<string, ObservedCalls>();

  /** `alias` is the bounded label of the call's alias. */
  ended(alias: string, call: AnsweredCall): void {
    if (call.provider === "") {
      return;
    }
    const { duration, tokens } = this.#of(alias, call);
    duration.observe(call.durationMs / 1_000);
    tokens?.input.observe(call.inputTokens);
    tokens?.output.observe(call.outputTokens);
  }

  observed(): readonly ObservedCalls[] {
    return [...this.#observed.values()];
  }

  #of(
    alias: string,
    { provider, callType, status }: AnsweredCall,
  ): ObservedCalls {
    // Several types of calls are one operation: a series must not occur twice.
    const operation = operationOf(callType);
    const name = joined(alias, provider, operation, status);
    const known = this.#observed.get(name);
    if (known !== undefined) {
      return known;
    }
    const failed = status === "failure";
    const fresh: ObservedCalls = {
      labels: {
        gen_ai_operation_name: operation,
        gen_ai_provider_name: providerOf(provider),
        gen_ai_request_model: alias,
        ...(failed ? { error_type: "_OTHER" } : {}),
      },
      duration: createHistogram(DURATIONS),
      tokens: failed
        ? null
        : { input: createHistogram(TOKENS), output: createHistogram(TOKENS) },
    };
    this.#observed.set(name, fresh);
    return fresh;
  }
}
