import type { CallBody } from "../calls/body.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { geminiWire } from "./gemini.ts";
import { ChatOfGenerated, generatedAnswer } from "./gemini-generate-answer.ts";
import { generateRequest } from "./gemini-generate-request.ts";
import { googleTools, safetySettings } from "./gemini-tools.ts";
import { listOf, recordsOf, type JsonRecord } from "../../core/json.ts";
import { ownAddress } from "./gemini-address.ts";
import type { ProviderWire } from "./wire.ts";

/**
 * Whether a chat has to reach Gemini by its own API: the one for OpenAI's clients has no search, no safety settings,
 * no documents and no images in answers.
 * https://ai.google.dev/gemini-api/docs/openai
 */
export function goesByGenerate(
  body: CallBody,
  deployment: PricedDeployment,
): boolean {
  return (
    ownAddress(deployment) !== null &&
    (googleTools(body).length > 0 ||
      safetySettings(body, deployment) != null ||
      listOf(body["modalities"]).includes("image") ||
      recordsOf(body["messages"]).some(hasFile))
  );
}

function hasFile({ content }: JsonRecord): boolean {
  return recordsOf(content).some(
    ({ type }) => type === "file" || type === "video_url",
  );
}

/** What it has besides the endpoint for OpenAI's clients. */
const ITS_OWN = ["safety_settings", "top_k"];
const SEARCHES = [...ITS_OWN, "web_search_options", "tools"];

/** The wire of a chat that is translated to Gemini's own API, whose path depends on whether it is a stream. */
export function chatByGenerate(isStream: boolean): ProviderWire {
  return {
    ...geminiWire,
    path: (_, { model, ...deployment }) =>
      `${ownAddress(deployment) ?? deployment.apiBase}/models/${encodeURIComponent(model)}:${
        isStream ? "streamGenerateContent?alt=sse" : "generateContent"
      }`,
    headers: ({ apiKey }): Record<string, string> =>
      apiKey === null ? {} : { "x-goog-api-key": apiKey.reveal() },
    unsupported: (endpoint, body, deployment) =>
      geminiWire.unsupported(endpoint, withoutOwn(body), deployment),
    request: (_, body, deployment, stream) =>
      generateRequest(body, deployment, stream),
    answer: (_, bytes) => generatedAnswer(bytes),
    stream: () => new ChatOfGenerated(),
  };
}

function withoutOwn(body: CallBody): CallBody {
  const own = googleTools(body).length > 0 ? SEARCHES : ITS_OWN;
  const others = Object.entries(body).filter(([name]) => !own.includes(name));
  return { ...Object.fromEntries(others), model: body.model };
}
