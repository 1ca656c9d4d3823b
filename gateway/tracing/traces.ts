import type { IncomingHttpHeaders } from "node:http";

/** A call at its start, as its span shows it. */
export interface TracedCall {
  readonly id: string;
  readonly callType: string;
  readonly alias: string;
  readonly stream: boolean;
  readonly keyAlias: string | null;
  readonly sessionId: string | null;
  readonly payers: {
    readonly userId: string | null;
    readonly teamId: string | null;
    readonly endUser: string | null;
    readonly tags: readonly string[];
  };
  /** Its parameters are shown, its content is not. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** An attempt at a deployment. */
export interface TracedAttempt {
  readonly deployment: {
    readonly id: string;
    readonly model: string;
    readonly providerName: string;
    readonly apiBase: string;
  };
  /** The alias it belongs to: that of the call, or a fallback. */
  readonly alias: string;
  /** Ms of waiting before it. */
  readonly pauseMs: number;
}

/** How a call ended. Money in dollars, times in ms since 1970. */
export interface TracedEnd {
  readonly status: "success" | "failure";
  readonly startedAt: number;
  readonly firstTokenAt: number | null;
  readonly responseId: string | null;
  readonly cache: "hit" | "miss" | "bypass";
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly cost: number;
  readonly saved: number;
  readonly estimated: boolean;
  readonly clientDisconnected: boolean;
  readonly error: { readonly type: string; readonly message: string } | null;
  /** The prompt and the answer as JSON; null: not shown. */
  readonly content: {
    readonly body: Readonly<Record<string, unknown>>;
    readonly response: string | null;
  } | null;
}

/** The span of one call, with a child span for each attempt. Nothing of it throws. */
export interface CallTrace {
  /** Deployments of the alias that are passed over because they are cooling down. */
  passedOver(deploymentIds: readonly string[]): void;
  attempt(attempt: TracedAttempt): void;
  /** Sent with the attempt at a deployment, if configured. */
  headers(deploymentId: string): Readonly<Record<string, string>>;
  /** The attempt at a deployment has answered, or its stream has started. */
  answered(kind: "whole" | "stream", deploymentId: string): void;
  /** The attempt at a deployment has failed. */
  failed(status: number, message: string, deploymentId: string): void;
  coolingDown(deploymentId: string, until: number): void;
  end(end: TracedEnd): void;
  /** Ends a call without an outcome: it was rejected, or its client left before a provider was called. No effect after `end`. */
  endUnanswered(
    error: { readonly type: string; readonly message: string } | null,
  ): void;
}

/** Spans of one collector since the start. */
export interface SpanCounts {
  /** Its address without credentials. */
  readonly collector: string;
  readonly exported: number;
  /** Dropped because too many were waiting. */
  readonly overflowed: number;
  /** Dropped because the collector did not accept them. */
  readonly failed: number;
  readonly waiting: number;
}

export interface Traces {
  /** Whether spans contain prompts and answers. */
  readonly content: boolean;
  counts(): readonly SpanCounts[];
  /** Starts the span of a call, in the trace of a `traceparent` if one was sent; null: the call is not sampled. */
  start(call: TracedCall, headers: IncomingHttpHeaders): CallTrace | null;
  /** Sends the spans that wait. */
  close(): Promise<void>;
}
