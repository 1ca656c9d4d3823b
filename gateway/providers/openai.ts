import { usageFromOpenAI, type Usage } from "../tokens/reported-usage.ts";
import { tiersIn } from "../pricing/service-tiers.ts";
import type { CallBody } from "../calls/body.ts";
import { limitNameOf } from "../dialects/dialect.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import type { SseEvent } from "../../core/sse.ts";
import { errorInEvent } from "./answered-error.ts";
import {
  isRecord,
  parseRecord,
  present,
  recordOf,
  recordsOf,
  type JsonRecord,
} from "../../core/json.ts";
import { PCM_BYTES_PER_SECOND } from "../tokens/spoken-audio.ts";
import { leaveOutGoogleTools } from "./gemini-tools.ts";
import { knownHistory } from "./history.ts";
import { forMistral, isMistral } from "./mistral.ts";
import { withOllamaEffort } from "./ollama-effort.ts";
import {
  nearestEffort,
  refusedSampling,
  rejectedBy,
  withEffort,
} from "./openai-sampling.ts";
import { hasThinkingSwitch, withThinkingSwitch } from "./thinking-switch.ts";
import type { AnswerFacts, Endpoint } from "./wire.ts";

/** Keys of `metadata` for the gateway, Hearth's own and LiteLLM's. */
const OUR_METADATA =
  /^(tags|session_id|requester_metadata|spend_logs_metadata|guardrails|policies|headers|(trace|generation|litellm|user_api_key)_.*)$/;

/** The body for the provider: its model name and defaults; streams always report usage. */
export function openaiRequest(
  endpoint: Endpoint,
  asked: CallBody,
  deployment: PricedDeployment,
  stream: boolean,
): Readonly<Record<string, unknown>> {
  const body = endpoint === "chat" ? withEffort(asked, deployment) : asked;
  const sent: Record<string, unknown> = {
    ...deployment.defaults,
    ...body,
    model: deployment.model,
  };
  if (endpoint === "chat") {
    nameLimit(sent, body, deployment);
    if (sent["reasoning_effort"] != null) {
      sent["reasoning_effort"] = nearestEffort(
        sent["reasoning_effort"],
        deployment,
      );
    }
    for (const name of [
      ...refusedSampling(body, deployment),
      ...rejectedBy(deployment),
    ]) {
      delete sent[name];
    }
  }
  leaveOutGoogleTools(sent);
  if (Array.isArray(sent["messages"])) {
    sent["messages"] = knownHistory(sent["messages"], deployment);
  }
  const metadata = storesMetadata(endpoint, body)
    ? providerMetadata(body["metadata"])
    : undefined;
  if (metadata === undefined) {
    delete sent["metadata"];
  } else {
    sent["metadata"] = metadata;
  }
  if (stream) {
    sent["stream_options"] = {
      ...(body["stream_options"] as object | undefined),
      include_usage: true,
    };
  }
  if (endpoint === "chat" && deployment.provider === "ollama") {
    return withOllamaEffort(sent);
  }
  if (endpoint === "chat" && hasThinkingSwitch(deployment)) {
    return withThinkingSwitch(sent);
  }
  return isMistral(deployment) ? forMistral(sent) : sent;
}

const LIMITS = ["max_completion_tokens", "max_tokens"] as const;

/** Gives the limit of the answer the name that the model's server reads. */
function nameLimit(
  sent: Record<string, unknown>,
  body: CallBody,
  deployment: PricedDeployment,
): void {
  const name = limitNameOf(deployment);
  const limit = [body, deployment.defaults]
    .flatMap((fields) => LIMITS.map((each) => fields[each]))
    .find((value) => value != null);
  if (limit === undefined) {
    return;
  }
  const isOfCall = LIMITS.some((each) => body[each] != null);
  for (const each of LIMITS) {
    // A default beside the limit of a call would be another one.
    if (name !== null || (isOfCall && body[each] == null)) {
      delete sent[each];
    }
  }
  if (name !== null) {
    sent[name] = limit;
  }
}

/**
 * OpenAI's Responses API accepts metadata always, chat only with `store`, and the others never.
 * https://platform.openai.com/docs/api-reference/chat/create
 */
function storesMetadata(endpoint: Endpoint, body: CallBody): boolean {
  return (
    endpoint === "responses" || (endpoint === "chat" && body["store"] === true)
  );
}

function providerMetadata(metadata: unknown): unknown {
  if (typeof metadata !== "object" || metadata === null) {
    return undefined;
  }
  const kept = Object.entries(metadata).filter(
    ([name]) => !OUR_METADATA.test(name),
  );
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/** The usage that a client requests of a stream of chat; with every chunk, it is vLLM's own option. */
export type RequestedUsage = "none" | "once" | "every chunk";

export function requestedUsage(body: CallBody): RequestedUsage {
  const options = recordOf(body["stream_options"]);
  if (options["include_usage"] !== true) {
    return "none";
  }
  return options["continuous_usage_stats"] === true ? "every chunk" : "once";
}

interface OpenAIAnswer {
  readonly id?: unknown;
  readonly usage?: unknown;
  readonly service_tier?: unknown;
  readonly choices?: readonly {
    readonly index?: unknown;
    readonly finish_reason?: unknown;
    readonly usage?: unknown;
    readonly text?: unknown;
    readonly message?: Said;
    readonly delta?: Said;
  }[];
}

/** A message, or what a chunk adds to it. */
interface Said {
  readonly content?: unknown;
  readonly audio?: unknown;
  readonly tool_calls?: unknown;
  readonly reasoning_content?: unknown;
  /** The name of the same in OpenRouter, Groq, Cerebras and newer vLLM; some servers send both. */
  readonly reasoning?: unknown;
}

/** Facts of a whole answer; empty for bytes that are not JSON. */
export function readAnswer(body: Buffer): AnswerFacts {
  const answer: OpenAIAnswer | null = parseRecord(body.toString("utf8"));
  if (answer === null) {
    return { usage: null, responseId: null, text: "" };
  }
  const choices = choicesOf(answer);
  const text = choices
    .map((choice) => textOf(choice.message) + asText(choice.text))
    .join("");
  return {
    usage: usageFromOpenAI(answer.usage),
    responseId: idOf(answer),
    text,
    choices: choices.length,
    isFiltered:
      choices.length > 0 &&
      choices.every(({ finish_reason: end }) => end === "content_filter"),
    ...present({ tiers: tiersOf(answer) }),
  };
}

/** Moonshot reports the usage of a stream in its last choice: https://platform.moonshot.ai/docs/api/chat */
function reportedUsage(answer: OpenAIAnswer): unknown {
  return (
    answer.usage ?? choicesOf(answer).find(({ usage }) => usage != null)?.usage
  );
}

/** undefined: the answer names none. */
function tiersOf({
  service_tier,
}: OpenAIAnswer): readonly string[] | undefined {
  return service_tier == null ? undefined : tiersIn({ service_tier });
}

/** Collects the facts of a stream, event by event. */
interface StreamReader {
  read(event: SseEvent): "pass" | "usage_only" | "done" | "error";
  facts(): AnswerFacts;
}

export function createStreamReader(): StreamReader {
  let usage: Usage | null = null;
  let responseId: string | null = null;
  let tiers: readonly string[] | undefined;
  /** Whether the end of each choice was announced. */
  const ended = new Map<unknown, boolean>();
  const texts: string[] = [];
  let audioBytes = 0;
  return {
    read({ data }) {
      if (data === "[DONE]") {
        return "done";
      }
      const answer: OpenAIAnswer | null = parseRecord(data);
      if (answer === null) {
        return "pass";
      }
      responseId ??= idOf(answer);
      tiers = tiersOf(answer) ?? tiers;
      const reported = usageFromOpenAI(reportedUsage(answer));
      // Some servers end with zeros after the usage.
      if (reported !== null && (usage === null || !isEmpty(reported))) {
        usage = reported;
      }
      for (const choice of choicesOf(answer)) {
        const text = textOf(choice.delta) + asText(choice.text);
        if (text !== "") {
          texts.push(text);
        }
        audioBytes += bytesOfAudio(choice.delta);
        // Some servers send an empty one with every chunk.
        if (choice.finish_reason) {
          ended.set(choice.index, true);
        } else if (!ended.has(choice.index)) {
          ended.set(choice.index, false);
        }
      }
      if (errorInEvent(data) !== null) {
        return "error";
      }
      return reported !== null && choicesOf(answer).length === 0
        ? "usage_only"
        : "pass";
    },
    facts: () => ({
      usage,
      responseId,
      text: texts.join(""),
      choices: ended.size,
      ...(audioBytes === 0
        ? {}
        : { spokenSeconds: audioBytes / PCM_BYTES_PER_SECOND }),
      ...present({ tiers }),
      endAnnounced: ended.size > 0 && ![...ended.values()].includes(false),
    }),
  };
}

function isEmpty({ inputTokens, outputTokens, reportedCost }: Usage): boolean {
  return inputTokens + outputTokens + (reportedCost ?? 0) === 0;
}

/** The choices that are objects: a provider may send anything. */
function choicesOf({
  choices,
}: OpenAIAnswer): NonNullable<OpenAIAnswer["choices"]> {
  return Array.isArray(choices)
    ? choices.filter((choice) => typeof choice === "object" && choice !== null)
    : [];
}

function idOf(answer: OpenAIAnswer): string | null {
  return typeof answer.id === "string" ? answer.id : null;
}

function textOf(message: Said | undefined): string {
  if (message == null) {
    return "";
  }
  const reasoning =
    asText(message.reasoning_content) || asText(message.reasoning);
  return (
    reasoning +
    asText(message.content) +
    asText(recordOf(message.audio)["transcript"]) +
    recordsOf(message.tool_calls).map(textOfCall).join("")
  );
}

/** Streams have audio in one format only, `pcm16`: https://platform.openai.com/docs/guides/audio */
function bytesOfAudio(delta: Said | undefined): number {
  const { data } = recordOf(delta?.audio);
  return Buffer.byteLength(asText(data), "base64");
}

/** What the model has written of a tool call: each piece of a stream repeats the fields around it. */
function textOfCall(call: JsonRecord): string {
  const { name, arguments: written } = recordOf(call["function"]);
  const { name: custom, input } = recordOf(call["custom"]);
  const given = isRecord(written) ? JSON.stringify(written) : written;
  return [name, given, custom, input].map(asText).join("");
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : "";
}
