import { z } from "zod";
import { out } from "../../admin/kinds/out.ts";
import type { CallKind } from "../../calls/call.ts";
import { METADATA_FIELDS } from "../../calls/metadata.ts";
import { textsOfDocuments } from "../../providers/rerank.ts";
import { listOf } from "../../../core/json.ts";
import { callRoute } from "./chat.ts";

/** Cohere counts a longer document as several, and bills each hundred as one search: https://cohere.com/pricing */
const DOCUMENT_TOKENS = 500;
const DOCUMENTS_PER_UNIT = 100;

const RERANK: CallKind = {
  route: "POST /v1/rerank",
  callType: "arerank",
  endpoint: "rerank",
  streams: false,
  shape: null,
  schema: z.looseObject({
    model: z.string(),
    query: z.string().min(1),
    documents: z
      .array(
        z.union([z.string(), z.looseObject({})], {
          error: "must be a text or an object",
        }),
      )
      .min(1),
    top_n: z.int().min(1).nullish(),
    rank_fields: z.array(z.string()).nullish(),
    return_documents: z.boolean().nullish(),
    max_chunks_per_doc: z.int().min(1).nullish(),
    max_tokens_per_doc: z.int().min(1).nullish(),
    ...METADATA_FIELDS,
  }),
  countInput: (gateway, { query, documents, rank_fields: fields }, model) =>
    gateway.tokens.countEmbeddingInput(
      [query, ...textsOfDocuments(documents, fields)],
      model,
    ),
  estimateOutput: () => 0,
  measure: ({ documents }, inputTokens) => ({
    piece: "searchUnits",
    count: Math.ceil(
      (listOf(documents).length + Math.floor(inputTokens / DOCUMENT_TOKENS)) /
        DOCUMENTS_PER_UNIT,
    ),
    estimated: false,
  }),
};

const rerankAnswer = z
  .looseObject({
    id: out.text.nullable(),
    results: z.array(
      z.looseObject({
        index: out.count,
        relevance_score: z.number(),
        document: z.looseObject({}).optional(),
      }),
    ),
    meta: z.looseObject({ billed_units: z.looseObject({}) }),
  })
  .meta({ id: "Rerank" });

/** POST /v1/rerank, in the shape of Cohere's API. */
export const rerank = callRoute(RERANK, {
  summary:
    "Rank documents by their relevance to a query (Cohere's API), at Cohere, Jina, Voyage or a runner.",
  answer: rerankAnswer,
  alsoAt: ["/v2/rerank"],
});
