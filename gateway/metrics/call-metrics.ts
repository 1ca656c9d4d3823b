import type { LitellmMetricsConfig } from "../config/litellm-metrics.ts";
import { GenAiMetrics } from "./gen-ai.ts";
import { createHistogram, type Histogram } from "./histogram.ts";
import { createBoundedLabel, joined, OTHER } from "./labels.ts";
import { LitellmMetrics } from "./litellm/litellm-metrics.ts";

/** The outcome of one call. */
export interface EndedCall {
  /** As configured: a wildcard, not what it stood for. */
  readonly alias: string;
  /** Empty: answered from the cache, or no provider was reached. */
  readonly provider: string;
  readonly team: string;
  readonly keyAlias: string;
  readonly status: "success" | "failure";
  readonly callType: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Dollars. */
  readonly cost: number;
  readonly saved: number;
  readonly unpriced: boolean;
  readonly durationMs: number;
  /** Part of it spent in the gateway itself; null: unknown. */
  readonly addedMs: number | null;
  /** null: not a stream. */
  readonly firstTokenMs: number | null;
}

export interface CallSums {
  readonly labels: Readonly<
    Record<"alias" | "provider" | "team" | "key_alias" | "status", string>
  >;
  calls: number;
  inputTokens: number;
  outputTokens: number;
  cost: number;
  saved: number;
  unpriced: number;
}

/** Latencies of one alias at one provider, in seconds. */
interface Latencies {
  readonly labels: Readonly<Record<"alias" | "provider", string>>;
  readonly duration: Histogram;
  readonly firstToken: Histogram;
}

/** Counted by name; the names are the joined values of the labels. */
export type Counts = ReadonlyMap<string, number>;

/**
 * Sums of all calls: a call costs two look-ups and some additions. The text for Prometheus
 * is created when it is scraped.
 */
export interface CallMetrics {
  ended(call: EndedCall): void;
  /** An attempt that failed: provider and status. */
  providerFailed(provider: string, status: number): void;
  retried(alias: string, retries: number, fallbacks: number): void;
  /** A second deployment was called beside a slow first one; `answered`: which of the two answered. */
  hedged(alias: string, answered: "first" | "second" | "neither"): void;
  refused(type: string): void;
  cooledDown(modelId: string): void;
  /** A call rejected because each deployment of its alias was cooling down (`cooldown`) or at its limit (`limit`). */
  unavailable(alias: string, reason: string): void;
  /** A guardrail checked: `passed`, `masked`, `blocked`, `unavailable`, or `unchecked` where it may fail open. */
  guarded(guardrail: string, outcome: string): void;
  /** A payer of this kind (`key`, `team` …) reached its soft budget. */
  softBudgetReached(kind: string): void;
  readonly sums: Iterable<CallSums>;
  readonly latencies: Iterable<Latencies>;
  readonly added: Histogram;
  readonly genAi: GenAiMetrics;
  readonly retries: Counts;
  readonly fallbacks: Counts;
  readonly hedges: Counts;
  readonly providerFailures: Counts;
  readonly refusals: Counts;
  readonly cooldowns: Counts;
  readonly unavailableRejections: Counts;
  readonly guardrailChecks: Counts;
  /** Every kind from the start, so that the first increase is visible. */
  readonly softBudgets: Counts;
  /** The same calls under LiteLLM's names; null: off. */
  readonly litellm: LitellmMetrics | null;
}

/** Payers that can have a soft budget. */
const WITH_SOFT_BUDGET = [
  "key",
  "user",
  "team",
  "member",
  "organization",
  "end_user",
  "tag",
];

const DURATIONS = [
  0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300,
];
const ADDED = [
  0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.025, 0.05, 0.1, 0.5, 2,
];

/**
 * Combinations of labels for each value that a label may take: thousands of keys with several models each would make an answer of
 * many megabytes, and rendering it would delay calls.
 */
const MAX_COMBINATIONS_PER_VALUE = 10;

/** `maxValues`: how many values each label may take; further ones are counted as `other`. */
export function createCallMetrics(
  maxValues: number,
  litellm: LitellmMetricsConfig | null,
): CallMetrics {
  const alias = createBoundedLabel(maxValues);
  const sums = createCallSums(alias, maxValues);
  const latencies = createLatencies();
  const added = createHistogram(ADDED);
  const genAi = new GenAiMetrics();
  const retries = new Map<string, number>();
  const fallbacks = new Map<string, number>();
  const hedges = new Map<string, number>();
  const providerFailures = new Map<string, number>();
  const refusals = new Map<string, number>();
  const cooldowns = new Map<string, number>();
  const unavailableRejections = new Map<string, number>();
  const guardrailChecks = new Map<string, number>();
  const softBudgets = new Map(WITH_SOFT_BUDGET.map((kind) => [kind, 0]));

  return {
    ended(call) {
      const sum = sums.of(call);
      addCall(sum, call);
      observe(latencies.of(sum.labels), call);
      genAi.ended(sum.labels.alias, call);
      if (call.addedMs !== null) {
        added.observe(call.addedMs / 1_000);
      }
    },
    providerFailed: (provider, status) =>
      count(providerFailures, joined(provider, status), 1),
    retried(name, again, fellBack) {
      count(retries, alias(name), again);
      count(fallbacks, alias(name), fellBack);
    },
    hedged: (name, answered) => count(hedges, joined(alias(name), answered), 1),
    refused: (type) => count(refusals, type, 1),
    cooledDown: (modelId) => count(cooldowns, modelId, 1),
    unavailable: (name, reason) =>
      count(unavailableRejections, joined(alias(name), reason), 1),
    guarded: (guardrail, outcome) =>
      count(guardrailChecks, joined(outcome, guardrail), 1),
    softBudgetReached: (kind) => count(softBudgets, kind, 1),
    sums: { [Symbol.iterator]: sums.all },
    latencies: { [Symbol.iterator]: latencies.all },
    added,
    genAi,
    retries,
    fallbacks,
    hedges,
    providerFailures,
    refusals,
    cooldowns,
    unavailableRejections,
    guardrailChecks,
    softBudgets,
    litellm: litellm === null ? null : new LitellmMetrics(litellm, maxValues),
  };
}

/** One record for each combination of labels. */
interface Series<Key, Value> {
  of(key: Key): Value;
  all(): IterableIterator<Value>;
}

function createCallSums(
  alias: (value: string) => string,
  maxValues: number,
): Series<EndedCall, CallSums> {
  const sums = new Map<string, CallSums>();
  const team = createBoundedLabel(maxValues);
  const keyAlias = createBoundedLabel(maxValues);

  function create(labels: CallSums["labels"]): CallSums {
    const fresh = {
      labels,
      calls: 0,
      inputTokens: 0,
      outputTokens: 0,
      cost: 0,
      saved: 0,
      unpriced: 0,
    };
    sums.set(nameOf(labels), fresh);
    return fresh;
  }

  function withoutPayers(of: CallSums["labels"]): CallSums {
    const labels = { ...of, team: OTHER, key_alias: OTHER };
    return sums.get(nameOf(labels)) ?? create(labels);
  }

  return {
    of(call) {
      const labels = {
        alias: alias(call.alias),
        provider: call.provider,
        team: team(call.team),
        key_alias: keyAlias(call.keyAlias),
        status: call.status,
      };
      return (
        sums.get(nameOf(labels)) ??
        (sums.size < maxValues * MAX_COMBINATIONS_PER_VALUE
          ? create(labels)
          : withoutPayers(labels))
      );
    },
    all: () => sums.values(),
  };
}

function nameOf(labels: CallSums["labels"]): string {
  return joined(...Object.values(labels));
}

function createLatencies(): Series<Latencies["labels"], Latencies> {
  const latencies = new Map<string, Latencies>();
  return {
    of({ alias, provider }) {
      const name = joined(alias, provider);
      const known = latencies.get(name);
      if (known !== undefined) {
        return known;
      }
      const fresh = {
        labels: { alias, provider },
        duration: createHistogram(DURATIONS),
        firstToken: createHistogram(DURATIONS),
      };
      latencies.set(name, fresh);
      return fresh;
    },
    all: () => latencies.values(),
  };
}

function observe(
  { duration, firstToken }: Latencies,
  { durationMs, firstTokenMs }: EndedCall,
): void {
  duration.observe(durationMs / 1_000);
  if (firstTokenMs !== null) {
    firstToken.observe(firstTokenMs / 1_000);
  }
}

function addCall(sum: CallSums, call: EndedCall): void {
  sum.calls++;
  sum.inputTokens += call.inputTokens;
  sum.outputTokens += call.outputTokens;
  sum.cost += call.cost;
  sum.saved += call.saved;
  if (call.unpriced) {
    sum.unpriced++;
  }
}

function count(counts: Map<string, number>, name: string, by: number): void {
  if (by > 0) {
    counts.set(name, (counts.get(name) ?? 0) + by);
  }
}
