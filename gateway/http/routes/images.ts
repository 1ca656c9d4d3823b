import { z } from "zod";
import type { CallBody } from "../../calls/body.ts";
import type { CallKind } from "../../calls/call.ts";
import { METADATA_FIELDS } from "../../calls/metadata.ts";
import { pricesOutput } from "../../pricing/cost.ts";
import { MAX_TOKENS_PER_IMAGE } from "../../tokens/image-tokens.ts";
import { callRoute, numberOf } from "./chat.ts";

/** Estimates the tokens of images, where a deployment bills by them. */
export function imageTokens(
  countImages: (body: CallBody) => number,
): CallKind["estimateOutput"] {
  return ({ tokens }, body, { alias, deployments }) => {
    const isBilledByToken = deployments.some(
      ({ priceCard }) => priceCard !== null && pricesOutput(priceCard),
    );
    const each = Math.max(MAX_TOKENS_PER_IMAGE, tokens.outputEstimate(alias));
    return isBilledByToken ? countImages(body) * each : 0;
  };
}

const countImages = (body: CallBody) => numberOf(body, "n") ?? 1;

const IMAGE: CallKind = {
  route: "POST /v1/images/generations",
  callType: "aimage_generation",
  endpoint: "images",
  streams: true,
  shape: null,
  schema: z.looseObject({
    model: z.string(),
    prompt: z.string().min(1),
    n: z.int().min(1).max(10).nullish(),
    user: z.string().nullish(),
    ...METADATA_FIELDS,
  }),
  countInput: (gateway, body, model) =>
    gateway.tokens.estimateText(String(body["prompt"]), model),
  estimateOutput: imageTokens(countImages),
  countImages,
};

export const imagesAnswer = z.looseObject({
  data: z.array(z.looseObject({})),
});

/** POST /v1/images/generations; forwarded as sent, priced by image where the price card has such a price. */
export const images = callRoute(IMAGE, {
  summary: "Generate images (OpenAI's API).",
  answer: imagesAnswer,
  azure: true,
});
