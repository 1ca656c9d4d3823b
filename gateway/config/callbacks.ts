import { unknownName } from "../../core/config/problem.ts";
import { problemAt, type Reading } from "../../core/config/reading.ts";

/** Callbacks that have an effect here; LiteLLM's other names are reported with a warning. */
export const CALLBACKS = [
  "prometheus",
  "otel",
  "langfuse_otel",
  "webhook",
  "generic_api",
] as const;

export type Callback = (typeof CALLBACKS)[number];

const OVER_OTLP =
  "set `proxy_settings.tracing.endpoint` to its address for OTLP (docs/tracing.md)";
const BY_WEBHOOK =
  "send finished calls to a webhook with `proxy_settings.call_webhook` (docs/tracing.md)";

/** What to use instead of LiteLLM's other callbacks. */
const ALTERNATIVES: Readonly<Record<string, string>> = {
  langfuse: "use langfuse_otel, with the same variables",
  opentelemetry: "use otel",
  otel_v2: "use otel",
  ...Object.fromEntries(
    [
      "agentops",
      "arize",
      "arize_phoenix",
      "braintrust",
      "datadog",
      "datadog_llm_observability",
      "helicone",
      "humanloop",
      "langsmith",
      "langtrace",
      "levo",
      "logfire",
      "lunary",
      "mlflow",
      "newrelic",
      "openmeter",
      "opik",
      "phoenix",
      "traceloop",
      "weave",
      "weave_otel",
      "wandb",
    ].map((name) => [name, OVER_OTLP]),
  ),
  ...Object.fromEntries(
    [
      "azure_storage",
      "custom_callback",
      "custom_callback_api",
      "dynamodb",
      "gcs_bucket",
      "gcs_pubsub",
      "s3",
      "s3_v2",
      "sqs",
      "supabase",
    ].map((name) => [name, BY_WEBHOOK]),
  ),
  sentry: "errors are in the log and in the metrics of /metrics",
  slack: "the supervisor sends alerts to Slack (docs/operate.md)",
  email: "the supervisor sends alerts by e-mail (docs/operate.md)",
};

/** Which calls each of LiteLLM's lists is about. */
const LISTS = {
  callbacks: ["success", "failure"],
  success_callback: ["success"],
  failure_callback: ["failure"],
} as const;

/** Callbacks by the outcome of the calls that they receive, each name once. */
export interface CallbacksConfig {
  readonly success: readonly Callback[];
  readonly failure: readonly Callback[];
}

/** Reads `callbacks`, `success_callback` and `failure_callback` of `proxy_settings`. */
export function readCallbacks(
  reading: Reading,
  proxy: Readonly<Partial<Record<keyof typeof LISTS, readonly string[]>>>,
): CallbacksConfig {
  const found = { success: new Set<Callback>(), failure: new Set<Callback>() };
  for (const list of Object.keys(LISTS) as (keyof typeof LISTS)[]) {
    for (const name of proxy[list] ?? []) {
      const callback = CALLBACKS.find((known) => known === name);
      if (callback === undefined) {
        reading.warnings.push(
          problemAt(
            reading,
            ["proxy_settings", list],
            unsupportedCallback(name),
          ),
        );
        continue;
      }
      for (const outcome of LISTS[list]) {
        found[outcome].add(callback);
      }
    }
  }
  return { success: [...found.success], failure: [...found.failure] };
}

/** Why a callback has no effect, and what to use instead. */
export function unsupportedCallback(name: string): string {
  const alternative = Object.hasOwn(ALTERNATIVES, name)
    ? ALTERNATIVES[name]
    : // A module of the operator's own, such as `custom_callbacks.handler`.
      name.includes(".")
      ? BY_WEBHOOK
      : undefined;
  return alternative === undefined
    ? `${unknownName("callback", name, CALLBACKS)}; it has no effect`
    : `callback "${name}" has no effect: ${alternative}`;
}

/** Whether a callback is named in any of the lists. */
export function hasCallback(
  { success, failure }: CallbacksConfig,
  callback: Callback,
): boolean {
  return success.includes(callback) || failure.includes(callback);
}
