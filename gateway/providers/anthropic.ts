import { withCacheMarks } from "./anthropic-cache.ts";
import { chatAnswer, nativeAnswer } from "./anthropic-answer.ts";
import {
  anthropicRequest,
  countRequest,
  nativeRequest,
} from "./anthropic-request.ts";
import {
  anthropicSentence,
  ChatStream,
  createNativeStream,
} from "./anthropic-stream.ts";
import { betasOf } from "./anthropic-betas.ts";
import { parseRecord, present, recordOf, textOf } from "../../core/json.ts";
import { errorMessageOf } from "./error-message.ts";
import type { ForwardedHeaders, ProviderWire } from "./wire.ts";

const API_VERSION = "2023-06-01";

/**
 * Anthropic's Messages API: `chat` is translated both ways; `messages` and `count_tokens` are its own and pass
 * untouched. `now` gives milliseconds, for the time in answers of OpenAI's shape.
 */
export function createAnthropicWire(
  now: () => number = Date.now,
): ProviderWire {
  return {
    speaks: (endpoint) =>
      endpoint === "chat" ||
      endpoint === "messages" ||
      endpoint === "count_tokens",
    path: (endpoint) =>
      endpoint === "count_tokens"
        ? "/v1/messages/count_tokens"
        : "/v1/messages",
    headers: ({ apiKey, defaults }, forwarded, chat) => ({
      ...(apiKey === null ? {} : { "x-api-key": apiKey.reveal() }),
      "anthropic-version": API_VERSION,
      ...forwarded,
      ...(chat === undefined
        ? {}
        : withBetas(forwarded, betasOf({ ...defaults, ...present(chat) }))),
    }),
    unsupported: (endpoint, body, deployment) =>
      endpoint === "chat"
        ? anthropicRequest(body, deployment, false).lacks
        : [],
    request(endpoint, body, deployment, stream) {
      if (endpoint === "count_tokens") {
        return countRequest(body, deployment);
      }
      const sent =
        endpoint === "chat"
          ? anthropicRequest(body, deployment, stream).sent
          : nativeRequest(body, deployment);
      return deployment.cacheMarks ? withCacheMarks(sent) : sent;
    },
    answer: (endpoint, bytes) =>
      endpoint === "chat"
        ? chatAnswer(bytes, Math.floor(now() / 1_000))
        : nativeAnswer(bytes),
    stream: (endpoint) =>
      endpoint === "chat" ? new ChatStream(now()) : createNativeStream(),
    error(status, text) {
      const error = recordOf(parseRecord(text)?.["error"]);
      const message = textOf(error["message"]);
      return message === ""
        ? errorMessageOf(status, text)
        : anthropicSentence(textOf(error["type"]), message);
    },
  };
}

function withBetas(
  forwarded: ForwardedHeaders,
  betas: readonly string[],
): ForwardedHeaders {
  const given = forwarded["anthropic-beta"]?.split(/\s*,\s*/) ?? [];
  return betas.length === 0
    ? {}
    : { "anthropic-beta": [...new Set([...given, ...betas])].join(",") };
}

export const anthropicWire = createAnthropicWire();
