import type { CallBody } from "../calls/body.ts";
import { isChatOnly } from "../dialects/dialect.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { changedIn } from "./neutral-values.ts";
import { isOpenAi } from "./responses-request.ts";

/** Models that always reason. */
const ALWAYS_REASONING =
  /^(o\d|gpt-5(?!\.)|gpt-[\d.]+-pro|gpt-6-(astra|rosalind)|gpt-6\.1-sol)/;
/** Models that reason unless the effort is `none`. */
const REASONING = /^gpt-(5\.([5-9]|\d\d)|[6-9]|\d\d)/;
/** Models that reason if they are given an effort. */
const MAY_REASON = /^gpt-5\.[1-4]/;
const NEVER_REASONING = /^(chatgpt-|gpt-[34])/;
/** Of those that always reason, the ones that take the effort `minimal`. */
const MINIMAL = /^gpt-5(-mini|-nano)?(-\d|$)/;
const WITHOUT_STOP = /^(o3(?!-mini)|o4|gpt-([5-9]|\d\d))/;

const LOGPROBS = ["logit_bias", "logprobs", "top_logprobs"];
/** What a model takes while it reasons with the values alone that change nothing. */
const WHILE_REASONING = [
  "temperature",
  "top_p",
  "presence_penalty",
  "frequency_penalty",
  ...LOGPROBS,
];
/** Parameters that other providers reject whatever their value: https://console.groq.com/docs/openai, https://docs.mistral.ai/api */
const REJECTED: ReadonlyMap<string, readonly string[]> = new Map([
  ["groq", [...LOGPROBS, "n"]],
  ["mistral", LOGPROBS],
]);

export function rejectedBy({
  providerName,
}: PricedDeployment): readonly string[] {
  return REJECTED.get(providerName) ?? [];
}

/**
 * Parameters of a chat that OpenAI's models reject: one that only others have, an effort where they do not reason, and those of sampling
 * while they do. Of other providers, what they reject of any model.
 * https://developers.openai.com/api/docs/guides/latest-model
 * https://learn.microsoft.com/azure/ai-foundry/openai/how-to/reasoning
 */
export function refusedSampling(
  body: CallBody,
  deployment: PricedDeployment,
): readonly string[] {
  if (!isOpenAi(deployment)) {
    return changedIn(body, rejectedBy(deployment));
  }
  const name = deployment.baseModel ?? deployment.model;
  const effort =
    takesEffort(body, deployment) || body["reasoning_effort"] == null
      ? []
      : ["reasoning_effort"];
  const reasons = !isChatOnly(deployment);
  return [
    ...(body["top_k"] == null ? [] : ["top_k"]),
    ...effort,
    ...(reasons && isReasoning(body, name)
      ? changedIn(body, WHILE_REASONING)
      : []),
    ...(reasons && WITHOUT_STOP.test(name) ? changedIn(body, ["stop"]) : []),
  ];
}

/** Models for chat alone, such as `gpt-5.1-chat-latest`, take `medium` at most. */
function takesEffort(
  { reasoning_effort: effort }: CallBody,
  deployment: PricedDeployment,
): boolean {
  return isChatOnly(deployment)
    ? effort === "medium"
    : !NEVER_REASONING.test(deployment.baseModel ?? deployment.model);
}

/** The nearest effort that a model of OpenAI takes: clients send the least ones, `none` and `minimal`, whichever model answers. */
export function nearestEffort(
  effort: unknown,
  deployment: PricedDeployment,
): unknown {
  const name = deployment.baseModel ?? deployment.model;
  const isAbsent =
    isOpenAi(deployment) &&
    ((effort === "none" && ALWAYS_REASONING.test(name)) ||
      (effort === "minimal" && /^(o\d|gpt-)/.test(name)));
  if (!isAbsent) {
    return effort;
  }
  return MINIMAL.test(name) ? "minimal" : "low";
}

function isReasoning(
  { reasoning_effort: effort }: CallBody,
  name: string,
): boolean {
  return (
    ALWAYS_REASONING.test(name) ||
    (REASONING.test(name) && effort !== "none") ||
    (MAY_REASON.test(name) && effort != null && effort !== "none")
  );
}
