import { expect, test } from "vitest";
import { loadText } from "../../test/servers/gateway-config.ts";
import { hasCallback } from "./callbacks.ts";
import { formatProblem } from "../../core/config/problem.ts";

function load(text: string) {
  const result = loadText(text);
  if (!result.ok) {
    throw new Error(result.problems.map(formatProblem).join("\n"));
  }
  return {
    callbacks: result.config.callbacks,
    warnings: result.warnings.map(({ path, message }) => `${path}: ${message}`),
  };
}

test("callbacks receives all calls, the other lists those of one outcome, each callback once", () => {
  expect(load("model_list: []\n").callbacks).toEqual({
    success: [],
    failure: [],
  });
  const both = load(
    "litellm_settings: { callbacks: [prometheus], success_callback: [prometheus] }\n",
  );
  expect(both.callbacks).toEqual({
    success: ["prometheus"],
    failure: ["prometheus"],
  });
  const failure = load("proxy_settings: { failure_callback: prometheus }\n");
  expect(failure.callbacks).toEqual({ success: [], failure: ["prometheus"] });
  expect(hasCallback(failure.callbacks, "prometheus")).toBe(true);
  expect(failure.warnings).toEqual([]);
});

test("an unknown callback is reported by name, with the one that was meant", () => {
  const { callbacks, warnings } = load(
    "litellm_settings: { callbacks: [promethius, prometheus] }\n",
  );
  expect(callbacks.success).toEqual(["prometheus"]);
  expect(warnings).toEqual([
    'litellm_settings.callbacks: unknown callback "promethius" (did you mean "prometheus"?); it has no effect',
  ]);
});

test("callbacks of LiteLLM that are not supported are reported with what to use instead", () => {
  const { callbacks, warnings } = load(
    "litellm_settings: { callbacks: [otel], success_callback: [langfuse, langsmith, s3_v2, custom_callbacks.handler] }\n",
  );
  expect(callbacks.success).toEqual(["otel"]);
  expect(warnings.slice(0, 4)).toEqual([
    'litellm_settings.success_callback: callback "langfuse" has no effect: use langfuse_otel, with the same variables',
    'litellm_settings.success_callback: callback "langsmith" has no effect: set `proxy_settings.tracing.endpoint` to its address for OTLP (docs/tracing.md)',
    'litellm_settings.success_callback: callback "s3_v2" has no effect: send finished calls to a webhook with `proxy_settings.call_webhook` (docs/tracing.md)',
    'litellm_settings.success_callback: callback "custom_callbacks.handler" has no effect: send finished calls to a webhook with `proxy_settings.call_webhook` (docs/tracing.md)',
  ]);
});
