import { z } from "zod";
import type { CallKind } from "../../calls/call.ts";
import { METADATA_FIELDS } from "../../calls/metadata.ts";
import { callRoute, numberOf } from "./chat.ts";

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
    gateway.tokens.countText(String(body["prompt"]), model),
  estimateOutput: () => 0,
  countImages: (body) => numberOf(body, "n") ?? 1,
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
