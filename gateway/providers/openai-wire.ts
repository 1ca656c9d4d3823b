import {
  inputUsageFromOpenAI,
  usageFromOpenAI,
  type Usage,
  type OtherUsage,
} from "../tokens/reported-usage.ts";
import { tiersIn } from "../pricing/service-tiers.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { withResponsesDefaults } from "./chat-responses-request.ts";
import { readEmbeddings } from "./embedding-vectors.ts";
import { endOfChat, failedPieces } from "./chat-stream-end.ts";
import {
  isRecord,
  numberOf,
  parseRecord,
  present,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { countedImages, reportedImages } from "./image-tool.ts";
import {
  createMediaStream,
  imageFacts,
  transcriptFacts,
} from "./media-answer.ts";
import { thinkingApart } from "./mistral.ts";
import { refusedSampling, refusesEffort } from "./openai-sampling.ts";
import { createStreamReader, openaiRequest, readAnswer } from "./openai.ts";
import {
  rerankAnswer,
  rerankPath,
  rerankRequest,
  unsupportedByRerank,
} from "./rerank.ts";
import { errorMessageOf } from "./error-message.ts";
import { responsesRequest } from "./responses-request.ts";
import type { SseEvent } from "../../core/sse.ts";
import {
  CUT_SHORT,
  type AnswerFacts,
  type Endpoint,
  type ProviderWire,
  type StreamPiece,
  type StreamTranslator,
} from "./wire.ts";

const PATHS: Readonly<Partial<Record<Endpoint, string>>> = {
  chat: "/chat/completions",
  completions: "/completions",
  embeddings: "/embeddings",
  responses: "/responses",
  moderations: "/moderations",
  images: "/images/generations",
  image_edits: "/images/edits",
  image_variations: "/images/variations",
  rerank: "/rerank",
  speech: "/audio/speech",
  transcriptions: "/audio/transcriptions",
  translations: "/audio/translations",
};

/** OpenAI's own path of an endpoint. */
export function openaiPath(endpoint: Endpoint): string {
  return PATHS[endpoint] ?? `/${endpoint}`;
}

/** Providers of this format known to have `/responses`; others declare it with `mode: responses` or `supports_responses`. */
const WITH_RESPONSES: ReadonlySet<string> = new Set([
  "openai",
  "openrouter",
  "xai",
  "groq",
]);

export function hasResponses(deployment: PricedDeployment): boolean {
  const declared = deployment.info["supports_responses"];
  return typeof declared === "boolean"
    ? declared
    : deployment.mode === "responses" ||
        WITH_RESPONSES.has(deployment.providerName);
}

/** The `reasoning` of a Responses body without an effort that the model rejects. */
function withTakenEffort(
  reasoning: unknown,
  deployment: PricedDeployment,
): unknown {
  const { effort, ...rest } = recordOf(reasoning);
  if (!refusesEffort(effort, deployment)) {
    return reasoning;
  }
  return Object.keys(rest).length === 0 ? null : rest;
}

/** OpenAI and providers of its format: bodies and streams pass as bytes, only what is billed is read. */
export const openaiWire: ProviderWire = {
  speaks: (endpoint, deployment) =>
    endpoint === "responses"
      ? hasResponses(deployment)
      : PATHS[endpoint] !== undefined,
  path: (endpoint, deployment) =>
    endpoint === "rerank" ? rerankPath(deployment) : openaiPath(endpoint),
  headers: ({ apiKey }): Record<string, string> =>
    apiKey === null ? {} : { authorization: `Bearer ${apiKey.reveal()}` },
  unsupported(endpoint, body, deployment) {
    switch (endpoint) {
      case "chat":
        return refusedSampling(body, deployment);
      case "rerank":
        return unsupportedByRerank(body, deployment);
      case "responses":
        return refusesEffort(recordOf(body["reasoning"])["effort"], deployment)
          ? ["reasoning.effort"]
          : [];
      default:
        return [];
    }
  },
  request(endpoint, body, deployment, stream) {
    if (endpoint === "chat" || endpoint === "completions") {
      return openaiRequest(endpoint, body, deployment, stream);
    }
    if (endpoint === "rerank") {
      return rerankRequest(body, deployment);
    }
    if (endpoint !== "responses") {
      return openaiRequest(endpoint, body, deployment, false);
    }
    const named = withResponsesDefaults(deployment);
    const { reasoning, ...sent } = openaiRequest(endpoint, body, named, false);
    return responsesRequest(
      {
        ...sent,
        ...present({ reasoning: withTakenEffort(reasoning, deployment) }),
      },
      deployment,
    );
  },
  answer(endpoint, bytes, sent) {
    if (endpoint === "rerank") {
      return rerankAnswer(bytes, sent);
    }
    const body = endpoint === "chat" ? withTextAlone(bytes) : bytes;
    return { body, facts: factsOf(endpoint, body) };
  },
  stream: streamOf,
  error: errorMessageOf,
};

function withTextAlone(bytes: Buffer): Buffer {
  // Of most answers the text is not needed here.
  if (!bytes.includes('"thinking"')) {
    return bytes;
  }
  const answer = bytes.toString("utf8");
  const apart = thinkingApart(answer);
  return apart === answer ? bytes : Buffer.from(apart);
}

function factsOf(endpoint: Endpoint, bytes: Buffer): AnswerFacts {
  switch (endpoint) {
    case "responses":
      return responsesFacts(bytes);
    case "images":
    case "image_edits":
    case "image_variations":
      return imageFacts(bytes);
    case "transcriptions":
    case "translations":
      return transcriptFacts(bytes);
    case "embeddings":
      return embeddingsFacts(bytes);
    default:
      return readAnswer(bytes);
  }
}

function embeddingsFacts(bytes: Buffer): AnswerFacts {
  const rest = readEmbeddings(bytes)?.rest;
  return {
    usage: inputUsageFromOpenAI(rest?.["usage"]),
    responseId: typeof rest?.["id"] === "string" ? rest["id"] : null,
    text: "",
  };
}

function streamOf(endpoint: Endpoint): StreamTranslator {
  switch (endpoint) {
    case "responses":
      return createResponsesStream();
    case "images":
    case "image_edits":
    case "speech":
    case "transcriptions":
    case "translations":
      return createMediaStream(endpoint);
    default:
      return createChatStream();
  }
}

/** Passes each event on unchanged, apart from thinking that Mistral has in a list. */
function createChatStream(): StreamTranslator {
  const reader = createStreamReader();
  let ended = false;
  return {
    push({ event, data: sent }) {
      if (ended) {
        return [];
      }
      const data = thinkingApart(sent);
      const kind = reader.read({ event, data });
      ended = kind === "done" || kind === "error";
      return kind === "error"
        ? failedPieces(event, data)
        : [{ kind, event, data }];
    },
    end: () => (ended ? [] : endOfChat(reader.facts())),
    facts: () => reader.facts(),
  };
}

function responsesFacts(bytes: Buffer): AnswerFacts {
  const answer = parseRecord(bytes.toString("utf8"));
  return {
    usage: responsesUsage(recordOf(answer)),
    responseId: typeof answer?.["id"] === "string" ? answer["id"] : null,
    text: outputText(answer?.["output"]),
    isFiltered:
      recordOf(answer?.["incomplete_details"])["reason"] === "content_filter",
    ...tierFacts(recordOf(answer)),
  };
}

function tierFacts({ service_tier }: JsonRecord): Pick<AnswerFacts, "tiers"> {
  return service_tier == null ? {} : { tiers: tiersIn({ service_tier }) };
}

/** The usage of a response with the searches among its items, and its images. */
function responsesUsage(response: JsonRecord): Usage | null {
  const usage = usageFromOpenAI(response["usage"]);
  return (
    usage && {
      ...usage,
      ...searchesAmong(recordsOf(response["output"])),
      ...othersIn(reportedImages(response)),
    }
  );
}

function othersIn(others: readonly OtherUsage[]): Pick<Usage, "others"> {
  return others.length === 0 ? {} : { others };
}

/**
 * The searches among the items of a response. Opening a page or searching within it does not count:
 * https://platform.openai.com/docs/guides/tools-web-search
 */
function searchesAmong(
  items: readonly JsonRecord[],
): Pick<Usage, "webSearches" | "fileSearches"> {
  const webSearches = items.filter(
    ({ type, action }) =>
      type === "web_search_call" &&
      ["search", undefined].includes(recordOf(action)["type"] as string),
  ).length;
  const fileSearches = items.filter(
    ({ type }) => type === "file_search_call",
  ).length;
  return {
    ...(webSearches === 0 ? {} : { webSearches }),
    ...(fileSearches === 0 ? {} : { fileSearches }),
  };
}

function outputText(output: unknown): string {
  if (!Array.isArray(output)) {
    return "";
  }
  return output
    .filter(isRecord)
    .map((item) =>
      Array.isArray(item["content"])
        ? item["content"].map((part) => textOf(recordOf(part)["text"])).join("")
        : textOf(item["arguments"] ?? item["input"]),
    )
    .join("");
}

/** A Responses stream has no [DONE]: its last event has the status. */
function createResponsesStream(): StreamTranslator {
  let facts: AnswerFacts = { usage: null, responseId: null, text: "" };
  const texts: string[] = [];
  const items: JsonRecord[] = [];
  let ended = false;
  let started: JsonRecord = { object: "response" };
  let sequence = -1;
  function push({ event, data }: SseEvent): readonly StreamPiece[] {
    const reported = parseRecord(data) ?? {};
    const type = textOf(reported["type"]);
    const response = recordOf(reported["response"]);
    sequence = numberOf(reported["sequence_number"]) ?? sequence + 1;
    if (typeof response["id"] === "string") {
      facts = { ...facts, responseId: facts.responseId ?? response["id"] };
      started = response;
    }
    if (type.endsWith(".delta")) {
      texts.push(textOf(reported["delta"]));
    }
    if (type === "response.output_item.done") {
      items.push(recordOf(reported["item"]));
    }
    const last =
      type === "response.completed" || type === "response.incomplete";
    const failed = type === "response.failed" || type === "error";
    if (last || failed) {
      ended = true;
      facts = { ...facts, usage: responsesUsage(response) };
    }
    facts = { ...facts, ...tierFacts(response) };
    return [{ kind: last ? "done" : failed ? "error" : "pass", event, data }];
  }
  function fail(message: string): readonly StreamPiece[] {
    const type = "response.failed";
    const error = { code: "server_error", message };
    const response = { ...started, status: "failed", error };
    const failed = { type, sequence_number: sequence + 1, response };
    return [{ kind: "error", event: type, data: JSON.stringify(failed) }];
  }
  return {
    push,
    end: () => (ended ? [] : fail(CUT_SHORT)),
    fail,
    facts: () => ({
      ...facts,
      text: texts.join(""),
      pieces: {
        ...searchesAmong(items),
        ...othersIn(countedImages(started, items)),
      },
    }),
  };
}
