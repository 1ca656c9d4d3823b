import type { CallBody } from "../calls/body.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { isChatOnly, isOpenAi } from "./responses-request.ts";

/** Models that always reason; later ones do if they are given an effort. */
const ALWAYS_REASONING = /^(o\d|gpt-5(?!\.))/;
const MAY_REASON = /^gpt-([6-9]|5\.)/;

/**
 * Parameters of a chat that OpenAI's models reject: one that only others have, and two while they reason, unless they have the default
 * of 1.
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
  return ["top_k", ...refused].filter((name) => body[name] != null);
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
