import type { CallBody } from "../calls/body.ts";
import { isChatOnly } from "../dialects/dialect.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { isOpenAi } from "./responses-request.ts";

/** Models that always reason; later ones do if they are given an effort. */
const ALWAYS_REASONING = /^(o\d|gpt-5(?!\.))/;
const MAY_REASON = /^gpt-([6-9]|5\.)/;
const NEVER_REASONING = /^(chatgpt-|gpt-[34])/;
/** Of those that always reason, the ones that take the effort `minimal`. */
const MINIMAL = /^gpt-5(-mini|-nano)?(-\d|$)/;

/**
 * Parameters of a chat that OpenAI's models reject: one that only others have, an effort where they do not reason, and two while they
 * do, unless they have the default of 1.
 * https://developers.openai.com/api/docs/guides/latest-model
 */
export function refusedSampling(
  body: CallBody,
  deployment: PricedDeployment,
): readonly string[] {
  if (!isOpenAi(deployment)) {
    return [];
  }
  const refused =
    !isChatOnly(deployment) && isReasoning(body, deployment)
      ? ["temperature", "top_p"].filter((name) => body[name] !== 1)
      : [];
  const effort = takesEffort(body, deployment) ? [] : ["reasoning_effort"];
  return ["top_k", ...effort, ...refused].filter((name) => body[name] != null);
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
  { baseModel, model }: PricedDeployment,
): boolean {
  const name = baseModel ?? model;
  return (
    ALWAYS_REASONING.test(name) ||
    (MAY_REASON.test(name) && effort != null && effort !== "none")
  );
}
