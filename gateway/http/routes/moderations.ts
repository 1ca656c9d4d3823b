import { z } from "zod";
import type { CallKind } from "../../calls/call.ts";
import { METADATA_FIELDS } from "../../calls/metadata.ts";
import { callRoute } from "./chat.ts";

const MODERATION: CallKind = {
  route: "POST /v1/moderations",
  callType: "amoderation",
  endpoint: "moderations",
  streams: false,
  shape: null,
  schema: z.looseObject({
    model: z.string(),
    input: z.union([z.string(), z.array(z.unknown()).min(1)], {
      error: "must be a text or a list",
    }),
    ...METADATA_FIELDS,
  }),
  countInput: (gateway, body, model) =>
    gateway.tokens.countEmbeddingInput(body["input"], model),
  estimateOutput: () => 0,
};

/** POST /v1/moderations; forwarded as sent. */
export const moderations = callRoute(MODERATION, {
  summary: "Classify texts (OpenAI's API).",
  answer: z.looseObject({ results: z.array(z.looseObject({})) }),
});
