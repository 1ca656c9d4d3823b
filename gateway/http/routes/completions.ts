import { z } from "zod";
import { itemsOf } from "../../cache/key.ts";
import type { CallBody } from "../../calls/body.ts";
import type { CallKind } from "../../calls/call.ts";
import { METADATA_FIELDS } from "../../calls/metadata.ts";
import { expectedOutput } from "../../calls/expected-output.ts";
import { completionsShape } from "../../dialects/completions.ts";
import { completionAnswer } from "./call-answers.ts";
import { callRoute, numberOf, tokenLimit } from "./chat.ts";

const completionBody = z.looseObject({
  model: z.string(),
  prompt: z.union([z.string(), z.array(z.unknown()).min(1)], {
    error: "must be a text or a list",
  }),
  stream: z.boolean().nullish(),
  n: z.int().min(1).max(128).nullish(),
  best_of: z.int().min(0).max(128).nullish(),
  /** 0: with `echo`, only the prompt is rated. */
  max_tokens: tokenLimit(0),
  user: z.string().nullish(),
  ...METADATA_FIELDS,
});

const COMPLETION: CallKind = {
  route: "POST /v1/completions",
  callType: "atext_completion",
  endpoint: "completions",
  streams: true,
  shape: completionsShape,
  schema: completionBody,
  countInput: (gateway, body, model) =>
    gateway.tokens.countEmbeddingInput(body["prompt"], model),
  estimateOutput: (gateway, body, group) =>
    (numberOf(body, "max_tokens") ?? expectedOutput(gateway, group)) *
    answersTo(body),
};

/** How many a call for completions generates: for each prompt those to return, or to choose from. */
function answersTo(body: CallBody): number {
  const each = Math.max(
    numberOf(body, "n") ?? 1,
    numberOf(body, "best_of") ?? 1,
  );
  return itemsOf(body["prompt"]).length * each;
}

/** POST /v1/completions, the predecessor of chat; native where the provider supports it, else translated to chat. */
export const completions = callRoute(COMPLETION, {
  summary: "Complete a text (OpenAI's legacy API).",
  answer: completionAnswer,
  azure: true,
});
