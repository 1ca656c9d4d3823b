import {
  inputOnly,
  inputUsageFromOpenAI,
  MAX_TOKENS,
  type Usage,
} from "../tokens/reported-usage.ts";
import type { CallBody } from "../calls/body.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import {
  isRecord,
  listOf,
  numberOf,
  parseJson,
  present,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import type { TranslatedAnswer } from "./wire.ts";

/**
 * The formats of rerank APIs: Cohere's; Jina's, which runners (llama.cpp, vLLM, infinity) share; Voyage's; and that of Hugging
 * Face's Text Embeddings Inference.
 */
type RerankFormat = "cohere" | "jina" | "voyage" | "tei";

function formatOf({ providerName }: PricedDeployment): RerankFormat {
  switch (providerName) {
    case "cohere":
    case "voyage":
      return providerName;
    case "huggingface":
      return "tei";
    default:
      return "jina";
  }
}

/** Providers whose rerank API is not below the address of their other routes: the path from the root. */
const FROM_ROOT: Readonly<Record<string, string>> = {
  cohere: "/v2/rerank",
  huggingface: "/rerank",
  infinity: "/rerank",
};

export function rerankPath({
  apiBase,
  providerName,
}: PricedDeployment): string {
  const path = FROM_ROOT[providerName];
  return path === undefined ? "/rerank" : new URL(apiBase).origin + path;
}

/** Of Cohere's first version; the others take no such limit either. */
export function unsupportedByRerank(
  body: CallBody,
  deployment: PricedDeployment,
): readonly string[] {
  const lacks: Readonly<Record<RerankFormat, readonly string[]>> = {
    cohere: ["max_chunks_per_doc"],
    voyage: ["max_chunks_per_doc", "max_tokens_per_doc"],
    tei: ["max_chunks_per_doc", "max_tokens_per_doc"],
    jina: [],
  };
  return lacks[formatOf(deployment)].filter((name) => body[name] != null);
}

/** The body for the provider. Documents are sent as texts: no other form is accepted by all. */
export function rerankRequest(
  body: CallBody,
  deployment: PricedDeployment,
): JsonRecord {
  const { documents, rank_fields: rankFields, ...others } = body;
  const lacks = unsupportedByRerank(body, deployment);
  const texts = textsOfDocuments(documents, rankFields);
  const {
    top_n: topN,
    return_documents: _addedHere,
    user: _user,
    metadata: _metadata,
    ...rest
  } = Object.fromEntries(
    Object.entries(others).filter(([name]) => !lacks.includes(name)),
  );
  const model = deployment.model;
  switch (formatOf(deployment)) {
    case "cohere":
    case "jina":
      return { ...rest, ...present({ top_n: topN }), model, documents: texts };
    case "voyage":
      return { ...rest, ...present({ top_k: topN }), model, documents: texts };
    case "tei": {
      const { model: _one, ...sent } = rest;
      return { truncate: true, ...sent, texts };
    }
  }
}

/** A document that is an object is ranked by its `rank_fields`, by default by its `text`, else by all of its fields. */
export function textsOfDocuments(
  documents: unknown,
  rankFields: unknown,
): readonly string[] {
  const named = new Set(listOf(rankFields).map(String));
  return listOf(documents).map((document) => textOfDocument(document, named));
}

function textOfDocument(document: unknown, named: ReadonlySet<string>): string {
  if (!isRecord(document)) {
    return textOf(document);
  }
  if (named.size === 0 && typeof document["text"] === "string") {
    return document["text"];
  }
  return Object.entries(document)
    .filter(([name]) => named.size === 0 || named.has(name))
    .map(
      ([name, value]) =>
        `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`,
    )
    .join("\n");
}

/** An answer of any of the formats in Cohere's: the best `top_n` results, with their documents if requested. */
export function rerankAnswer(
  bytes: Buffer,
  sent: JsonRecord = {},
): TranslatedAnswer {
  const answer = parseJson(bytes.toString("utf8"));
  const { results, data, usage: _usage, meta, ...rest } = recordOf(answer);
  const found = [answer, results, data].find(Array.isArray);
  if (found === undefined) {
    return { body: bytes, facts: { usage: null, responseId: null, text: "" } };
  }
  const documents = listOf(sent["documents"]);
  const wanted = sent["return_documents"] === true;
  const ranked = recordsOf(found)
    .map((result) => resultOf(result, wanted ? documents : null))
    .toSorted((one, other) => other.relevance_score - one.relevance_score)
    .slice(0, numberOf(sent["top_n"]) ?? undefined);
  const usage = usageOf(recordOf(answer));
  const id = textOf(rest["id"]);
  const body = {
    ...present({ model: rest["model"] }),
    id: id === "" ? null : id,
    results: ranked,
    meta: { ...recordOf(meta), billed_units: billedUnits(meta, usage) },
    ...present({ usage: _usage }),
  };
  return {
    body: Buffer.from(JSON.stringify(body)),
    facts: { usage, responseId: id === "" ? null : id, text: "" },
  };
}

function resultOf(result: JsonRecord, documents: readonly unknown[] | null) {
  const index = numberOf(result["index"]) ?? 0;
  const score =
    numberOf(result["relevance_score"]) ?? numberOf(result["score"]);
  const document = documents?.[index];
  return {
    index,
    relevance_score: score ?? 0,
    ...(document === undefined
      ? {}
      : { document: isRecord(document) ? document : { text: document } }),
  };
}

/** Search units of Cohere, or tokens. */
function usageOf(answer: JsonRecord): Usage | null {
  const meta = recordOf(answer["meta"]);
  const billed = recordOf(meta["billed_units"]);
  const units = numberOf(billed["search_units"]);
  const searchUnits =
    units !== null && units >= 0 && units <= MAX_TOKENS ? units : null;
  const tokens =
    inputUsageFromOpenAI(answer["usage"]) ??
    inputUsageFromOpenAI({
      input_tokens: recordOf(meta["tokens"])["input_tokens"],
    }) ??
    inputUsageFromOpenAI({ total_tokens: billed["total_tokens"] });
  if (searchUnits === null && tokens === null) {
    return null;
  }
  return {
    ...inputOnly(tokens?.inputTokens ?? 0),
    ...(searchUnits === null ? {} : { searchUnits }),
  };
}

function billedUnits(meta: unknown, usage: Usage | null): JsonRecord {
  const reported = recordOf(recordOf(meta)["billed_units"]);
  return Object.keys(reported).length > 0 || usage === null
    ? reported
    : { total_tokens: usage.inputTokens };
}
