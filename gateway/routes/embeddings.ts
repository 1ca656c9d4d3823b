import { z } from "zod";
import type { CallKind } from "../calls/call.ts";
import { callRoute } from "./chat.ts";

const tokenIds = z.array(z.int().min(0)).min(1);

const embeddingBody = z.looseObject({
  model: z.string(),
  input: z.union(
    [
      z.string(),
      z.array(z.string()).min(1),
      tokenIds,
      z.array(tokenIds).min(1),
    ],
    {
      error: "expected a text, a list of texts, or lists of token numbers",
    },
  ),
  encoding_format: z.enum(["float", "base64"]).nullish(),
  dimensions: z.int().min(1).nullish(),
  user: z.string().nullish(),
  metadata: z.looseObject({}).nullish(),
});

const EMBEDDING: CallKind = {
  route: "POST /v1/embeddings",
  callType: "aembedding",
  endpoint: "embeddings",
  streams: false,
  shape: null,
  schema: embeddingBody,
  countInput: (gateway, body, model) =>
    gateway.tokens.countEmbeddingInput(body["input"], model),
  estimateOutput: () => 0,
};

/** POST /v1/embeddings */
export const embeddings = callRoute(EMBEDDING);
