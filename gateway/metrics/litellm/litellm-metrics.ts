import type { Caller } from "../../access/callers.ts";
import type { LitellmMetricsConfig } from "../../config/litellm-metrics.ts";
import { CallError, statusOf, type ErrorKind } from "../../http/errors.ts";
import { litellmClassOf } from "../../http/litellm-classes.ts";
import type { PricedDeployment } from "../../routing/catalog.ts";
import { CallLabelValues, type LabelledCall } from "./call-labels.ts";
import { CallTally, type EndedLitellmCall } from "./call-tally.ts";
import { NONE, SeriesSet, type CallLabels } from "./series.ts";
import { capital } from "../../../core/words.ts";

/** How many records there are for each value that a label may take: a key is used with several models. */
const RECORDS_PER_VALUE = 3;

interface Count {
  count: number;
}

interface Attempts {
  count: number;
  failed: number;
}

/** What a provider reports to be left of its own limits in the current minute; null: not reported. */
export interface RemainingAtProvider {
  requests: number | null;
  tokens: number | null;
}

/** Why a call was sent to a fallback. */
export interface OriginalFailure {
  readonly status: number;
  readonly deployment: PricedDeployment;
}

/** Rejected before a provider was reached. */
interface RejectedCall {
  readonly error: unknown;
  readonly caller: Caller | null;
  /** null: the call was rejected before its model and its payers were known. */
  readonly call: LabelledCall | null;
  /** The alias called, as configured; null: there is none of that name. */
  readonly alias: string | null;
  /** Its path, such as `/v1/chat/completions`. */
  readonly route: string;
}

/**
 * Sums of calls for LiteLLM's metrics, which exist only while they are switched on. A call costs a few look-ups; samples are
 * computed when they are scraped.
 */
export class LitellmMetrics {
  readonly config: LitellmMetricsConfig;
  readonly maxValues: number;
  readonly calls: SeriesSet<CallTally>;
  readonly attempts: SeriesSet<Attempts>;
  readonly successfulFallbacks: SeriesSet<Count>;
  readonly failedFallbacks: SeriesSet<Count>;
  readonly cooldowns: SeriesSet<Count>;
  readonly remaining: SeriesSet<RemainingAtProvider>;
  readonly #labels: CallLabelValues;

  constructor(config: LitellmMetricsConfig, maxValues: number) {
    this.config = config;
    this.maxValues = maxValues;
    this.#labels = new CallLabelValues(maxValues, config.endUsers);
    const max = RECORDS_PER_VALUE * maxValues;
    const count = () => ({ count: 0 });
    this.calls = new SeriesSet(max, () => new CallTally());
    this.attempts = new SeriesSet(max, () => ({ count: 0, failed: 0 }));
    this.successfulFallbacks = new SeriesSet(max, count);
    this.failedFallbacks = new SeriesSet(max, count);
    this.cooldowns = new SeriesSet(max, count);
    this.remaining = new SeriesSet(max, () => ({
      requests: null,
      tokens: null,
    }));
  }

  /** A call that is in the journal, with the deployment that answered or failed last; `status` is null for a success. */
  ended(
    call: LabelledCall,
    deployment: PricedDeployment | null,
    status: number | null,
    ended: EndedLitellmCall,
  ): void {
    this.calls
      .of({
        ...this.#of(call, deployment),
        route: pathOf(call.kind.route),
        status_code: String(status ?? 200),
        ...(status === null
          ? NO_EXCEPTION
          : exceptionLabels(status, providerClass(status, deployment))),
      })
      .add(ended);
  }

  /** A call that was rejected: it has no row, and costs nothing. */
  rejected({ error, caller, call, alias, route }: RejectedCall): void {
    const status = error instanceof CallError ? statusOf(error) : 500;
    this.calls.of({
      ...this.#labels.ofCaller(caller, call?.payers.endUser ?? null),
      ...this.#labels.ofAlias(call?.group.configured ?? alias),
      ...this.#labels.ofDeployment(null),
      route: pathOf(route),
      status_code: String(status),
      ...exceptionLabels(status, rejectionClass(error)),
    }).calls++;
  }

  /** An attempt at a deployment; `status` of its failure, null when it answered. */
  attempted(
    call: LabelledCall,
    deployment: PricedDeployment,
    status: number | null,
  ): void {
    const attempts = this.attempts.of({
      ...this.#of(call, deployment),
      ...(status === null
        ? NO_EXCEPTION
        : exceptionLabels(status, providerClass(status, deployment))),
    });
    attempts.count++;
    if (status !== null) {
      attempts.failed++;
    }
  }

  /** The end of the attempts at a fallback; without `failed` no deployment of the alias called was available. */
  fellBack(
    call: LabelledCall,
    fallback: PricedDeployment,
    isAnswered: boolean,
    failed: OriginalFailure | null,
  ): void {
    const series = isAnswered ? this.successfulFallbacks : this.failedFallbacks;
    series.of({
      ...this.#of(call, fallback),
      ...this.#labels.ofFallback(fallback),
      ...(failed === null
        ? exceptionLabels(429, NO_DEPLOYMENT_AVAILABLE)
        : exceptionLabels(
            failed.status,
            providerClass(failed.status, failed.deployment),
          )),
    }).count++;
  }

  /** A cooldown that started on this instance. */
  cooledDown(deployment: PricedDeployment, status: number): void {
    this.cooldowns.of({
      ...this.#labels.ofDeployment(deployment),
      exception_status: String(status),
    }).count++;
  }

  /** Headers of a provider's answer, by their lower-case names. */
  answeredWith(
    call: LabelledCall,
    deployment: PricedDeployment,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    const requests = headers["x-ratelimit-remaining-requests"];
    const tokens = headers["x-ratelimit-remaining-tokens"];
    if (requests === undefined && tokens === undefined) {
      return;
    }
    const remaining = this.remaining.of(this.#of(call, deployment));
    remaining.requests = numberIn(requests) ?? remaining.requests;
    remaining.tokens = numberIn(tokens) ?? remaining.tokens;
  }

  #of(
    { caller, payers, group }: LabelledCall,
    deployment: PricedDeployment | null,
  ): CallLabels {
    return {
      ...this.#labels.ofCaller(caller, payers.endUser),
      ...this.#labels.ofAlias(group.configured),
      ...this.#labels.ofDeployment(deployment),
    };
  }
}

const NO_EXCEPTION: CallLabels = {
  exception_status: NONE,
  exception_class: NONE,
};

function exceptionLabels(status: number, name: string): CallLabels {
  return { exception_status: String(status), exception_class: name };
}

/** `Openai.RateLimitError`, as LiteLLM names errors of providers. */
function providerClass(
  status: number,
  deployment: PricedDeployment | null,
): string {
  const name = litellmClassOf(status);
  const provider = deployment?.providerName ?? "";
  return provider === "" ? name : `${capital(provider)}.${name}`;
}

const NO_DEPLOYMENT_AVAILABLE = "RouterRateLimitError";

/** LiteLLM's classes of what it rejects itself. */
const REJECTIONS: Readonly<Partial<Record<ErrorKind, string>>> = {
  budget_exceeded: "BudgetExceededError",
  rate_limit_exceeded: "HTTPException",
  no_deployments_available: NO_DEPLOYMENT_AVAILABLE,
  invalid_request: "BadRequestError",
  unknown_model: "BadRequestError",
};

function rejectionClass(error: unknown): string {
  return error instanceof CallError
    ? (REJECTIONS[error.kind] ?? "ProxyException")
    : "ProxyException";
}

/** Of `POST /v1/chat/completions`. */
function pathOf(route: string): string {
  return route.slice(route.indexOf(" ") + 1);
}

function numberIn(header: string | string[] | undefined): number | null {
  const value = Number(header);
  return header === undefined || header === "" || !Number.isFinite(value)
    ? null
    : value;
}
