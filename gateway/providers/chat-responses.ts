import type { CallBody } from "../calls/body.ts";
import { isChatOnly } from "../dialects/dialect.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { isWebSearch } from "../dialects/responses-tools.ts";
import { completionOf } from "./chat-responses-answer.ts";
import {
  lackingInResponses,
  responsesBodyOf,
} from "./chat-responses-request.ts";
import { ChatOfResponses } from "./chat-responses-stream.ts";
import { isRecord, parseRecord, recordOf, recordsOf } from "../../core/json.ts";
import { isOpenAi } from "./responses-request.ts";
import type { ProviderWire } from "./wire.ts";

/** Models without chat. https://developers.openai.com/api/docs/models */
const WITHOUT_CHAT = /codex|-pro(-|$)|deep-research/;

/** Models whose chat searches: https://platform.openai.com/docs/guides/tools-web-search?api-mode=chat */
const CHAT_SEARCHES = /-search-(preview|api)/;

const VERSION = /^gpt-(\d+)(?:\.(\d+))?/;

/**
 * Whether a chat has to reach the provider as a call of its Responses API. OpenAI's models since GPT-5.4 take functions by chat
 * only with an effort of `none`, some models have no chat, most search by Responses only, no chat has a summary of the reasoning, and
 * `mode: responses` says the same of any other.
 * https://developers.openai.com/api/docs/guides/migrate-to-responses
 */
export function goesByResponses(
  wire: ProviderWire,
  body: CallBody,
  deployment: PricedDeployment,
): boolean {
  if (!wire.speaks("responses", deployment)) {
    return false;
  }
  if (deployment.mode === "responses") {
    return true;
  }
  if (!isOpenAi(deployment) || isChatOnly(deployment)) {
    return false;
  }
  const name = deployment.baseModel ?? deployment.model;
  return (
    WITHOUT_CHAT.test(name) ||
    recordOf(body["reasoning_effort"])["summary"] != null ||
    (searches(body) && !CHAT_SEARCHES.test(name)) ||
    (isSince54(name) && callsFunctions(body, deployment))
  );
}

function isSince54(name: string): boolean {
  const [, major, minor = 0] = VERSION.exec(name) ?? [];
  return Number(major) > 5 || (Number(major) === 5 && Number(minor) >= 4);
}

function searches({ web_search_options: options, tools }: CallBody): boolean {
  return isRecord(options) || recordsOf(tools).some(isWebSearch);
}

function callsFunctions(
  { tools, reasoning_effort: effort }: CallBody,
  { defaults }: PricedDeployment,
): boolean {
  const types = recordsOf(tools ?? defaults["tools"]).map(({ type }) => type);
  return (
    types.length > 0 &&
    types.every((type) => type === "function") &&
    (effort ?? defaults["reasoning_effort"]) !== "none"
  );
}

/** The wire of a deployment whose chat is translated to its provider's Responses API. */
export function chatByResponses(
  wire: ProviderWire,
  { id }: PricedDeployment,
): ProviderWire {
  return {
    ...wire,
    path: (_, deployment) => wire.path("responses", deployment),
    unsupported: (_, body, deployment) => [
      ...new Set([
        ...lackingInResponses(body),
        ...wire.unsupported("chat", body, deployment),
      ]),
    ],
    request: (_, body, deployment) => responsesBodyOf(body, deployment),
    answer(_, bytes) {
      const response = parseRecord(bytes.toString("utf8"));
      const { facts } = wire.answer("responses", bytes);
      return Array.isArray(response?.["output"])
        ? {
            body: Buffer.from(JSON.stringify(completionOf(response, id))),
            facts,
          }
        : { body: bytes, facts };
    },
    stream: () => new ChatOfResponses(wire.stream("responses"), id),
  };
}
