import { z } from "zod";
import { callerOf } from "../../access/authenticate.ts";
import { authorizeRoute } from "../../access/authorize.ts";
import { authorizeModel } from "../../access/models.ts";
import { out } from "../../admin/kinds/out.ts";
import { estimatedTokens } from "../../calls/count-tokens.ts";
import { modelOf, validateBody } from "../../calls/validate.ts";
import { openResponse } from "../../responses/open-response.ts";
import { route } from "../route.ts";
import { responsesBody } from "./responses.ts";

const NAME = "POST /v1/responses/input_tokens";

/** POST /v1/responses/input_tokens, with what the input continues. */
export const inputTokens = route(
  NAME,
  {
    summary:
      "Estimate the tokens of an input, with what it continues, without calling a provider.",
    input: responsesBody,
    answer: z.object({
      object: z.literal("response.input_tokens"),
      input_tokens: out.count,
      estimated: z.literal(true),
    }),
  },
  async (gateway, request) => {
    const caller = callerOf(request);
    authorizeRoute(caller, NAME);
    const group = authorizeModel(gateway, caller, modelOf(request));
    const { body } = await openResponse(gateway, caller, request.id, {
      ...validateBody(responsesBody, request.body),
      store: false,
    });
    return {
      object: "response.input_tokens",
      ...estimatedTokens(gateway, group, body),
    };
  },
  { alsoAt: ["/responses/input_tokens"] },
);
