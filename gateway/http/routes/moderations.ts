import { z } from "zod";
import { isRecord } from "../../../core/json.ts";
import type { CallKind } from "../../calls/call.ts";
import { METADATA_FIELDS } from "../../calls/metadata.ts";
import type { Gateway } from "../../gateway.ts";
import { callRoute, carryOut } from "./chat.ts";

const OPENAI_DEFAULT = "omni-moderation-latest";

const MODERATION: CallKind = {
  route: "POST /v1/moderations",
  callType: "amoderation",
  endpoint: "moderations",
  streams: false,
  shape: null,
  schema: z.looseObject({
    model: z.string().default(OPENAI_DEFAULT),
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
export const moderations = callRoute(
  MODERATION,
  {
    summary:
      "Classify texts (OpenAI's API); by default with the first alias of mode moderation, else with OpenAI's own default.",
    answer: z.looseObject({ results: z.array(z.looseObject({})) }),
  },
  async (gateway, request, reply, kind) => {
    const { body } = request;
    if (isRecord(body) && !("model" in body)) {
      Object.assign(body, { model: defaultModel(gateway) });
    }
    return carryOut(gateway, request, reply, kind);
  },
);

function defaultModel({ catalog }: Pick<Gateway, "catalog">): string {
  const ofMode = catalog.deployments.find(({ mode }) => mode === "moderation");
  return ofMode?.alias ?? OPENAI_DEFAULT;
}
