import { expect, test } from "vitest";
import { createCallMetrics, type EndedCall } from "./call-metrics.ts";
import { ofGenAi } from "./gen-ai-families.ts";

const CALL: EndedCall = {
  alias: "fast",
  provider: "gemini",
  team: "",
  keyAlias: "key",
  status: "success",
  callType: "acompletion",
  inputTokens: 10,
  outputTokens: 4,
  cost: 0,
  saved: 0,
  unpriced: false,
  durationMs: 250,
  addedMs: 1,
  firstTokenMs: null,
};

/** Samples of a metric by their labels without `le`: `_count` and `_sum`. */
function samplesOf(calls: readonly EndedCall[], name: string) {
  const metrics = createCallMetrics(10, null);
  for (const call of calls) {
    metrics.ended(call);
  }
  const family = ofGenAi(metrics.genAi).find((one) => one.name === name);
  return (family?.samples() ?? []).filter(
    ([labels]) => labels["le"] === undefined,
  );
}

test("calls of every type of one operation are one series, in the names of the conventions", () => {
  const samples = samplesOf(
    [
      CALL,
      { ...CALL, callType: "anthropic_messages", inputTokens: 20 },
      { ...CALL, provider: "" },
    ],
    "gen_ai_client_token_usage",
  );
  const labels = {
    gen_ai_operation_name: "chat",
    gen_ai_provider_name: "gcp.gemini",
    gen_ai_request_model: "fast",
  };
  const series = (type: string, part: string) => ({
    ...labels,
    gen_ai_token_type: type,
    __name: `gen_ai_client_token_usage_${part}`,
  });
  expect(samples).toEqual([
    [series("input", "sum"), 30],
    [series("input", "count"), 2],
    [series("output", "sum"), 8],
    [series("output", "count"), 2],
  ]);
});

test("failed calls have a duration with the type of error, and no tokens", () => {
  const calls = [{ ...CALL, status: "failure" as const }];
  expect(samplesOf(calls, "gen_ai_client_token_usage")).toEqual([]);
  expect(
    samplesOf(calls, "gen_ai_client_operation_duration_seconds"),
  ).toMatchObject([
    [{ error_type: "_OTHER", gen_ai_operation_name: "chat" }, 0.25],
    [{ error_type: "_OTHER" }, 1],
  ]);
});
