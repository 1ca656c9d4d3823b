import type { SseEvent } from "../../core/sse.ts";
import { errorInEvent } from "./answered-error.ts";
import { DONE, endOfChat, failedPieces } from "./chat-stream-end.ts";
import {
  numberOf,
  parseRecord,
  present,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { createStreamReader, readAnswer } from "./openai.ts";
import type {
  AnswerFacts,
  StreamPiece,
  StreamTranslator,
  TranslatedAnswer,
} from "./wire.ts";

/** An answer of Gemini's `generateContent` as one of chat; other bytes unchanged. */
export function generatedAnswer(bytes: Buffer): TranslatedAnswer {
  const answer = parseRecord(bytes.toString("utf8"));
  if (!isAnswer(answer)) {
    return { body: bytes, facts: readAnswer(bytes) };
  }
  const choices = candidatesOf(answer).map((candidate, index) => {
    const choice = new Choice();
    const { content, tool_calls, ...said } = choice.take(candidate);
    const calls = recordsOf(tool_calls).map(({ index: _, ...call }) => call);
    return {
      index,
      message: {
        role: "assistant",
        content: content ?? (calls.length === 0 ? "" : null),
        ...said,
        ...(calls.length === 0 ? {} : { tool_calls: calls }),
      },
      finish_reason: choice.finish ?? "stop",
    };
  });
  const chat = {
    ...headOf(answer, "chat.completion"),
    choices,
    usage: usageOf(answer["usageMetadata"], searchesIn(answer)),
  };
  const body = Buffer.from(JSON.stringify(chat));
  return { body, facts: readAnswer(body) };
}

/** The events of Gemini's `streamGenerateContent` as chunks of chat. */
export class ChatOfGenerated implements StreamTranslator {
  readonly #reader = createStreamReader();
  readonly #choices = new Map<number, Choice>();
  #head: JsonRecord = {};
  #usage: unknown = null;
  #searches = 0;
  #ended = false;

  push({ event, data }: SseEvent): readonly StreamPiece[] {
    if (this.#ended) {
      return [];
    }
    if (errorInEvent(data) !== null) {
      this.#ended = true;
      return failedPieces(event, data);
    }
    const answer = parseRecord(data);
    if (!isAnswer(answer)) {
      return [];
    }
    const { created } = this.#head;
    this.#head = headOf(
      answer,
      "chat.completion.chunk",
      numberOf(created) ?? undefined,
    );
    this.#usage = answer["usageMetadata"] ?? this.#usage;
    this.#searches = Math.max(this.#searches, searchesIn(answer));
    const choices = candidatesOf(answer).map((candidate, position) => {
      const index = numberOf(candidate["index"]) ?? position;
      const choice = this.#choices.get(index) ?? new Choice();
      const isFirst = !this.#choices.has(index);
      this.#choices.set(index, choice);
      const delta = choice.take(candidate);
      return {
        index,
        delta: isFirst ? { role: "assistant", ...delta } : delta,
        finish_reason: choice.finish,
      };
    });
    return choices.length === 0 ? [] : [this.#chunk("pass", { choices })];
  }

  end(): readonly StreamPiece[] {
    if (this.#ended) {
      return [];
    }
    this.#ended = true;
    const usage = usageOf(this.#usage, this.#searches);
    const reported =
      usage === null ? [] : [this.#chunk("usage_only", { choices: [], usage })];
    const end = endOfChat(this.#reader.facts());
    return end[0] === DONE ? [...reported, DONE] : end;
  }

  facts(): AnswerFacts {
    const facts = this.#reader.facts();
    const usage = usageOf(this.#usage, this.#searches);
    return facts.usage === null && usage !== null
      ? { ...facts, usage: readUsage(usage) }
      : facts;
  }

  #chunk(kind: StreamPiece["kind"], fields: JsonRecord): StreamPiece {
    const data = JSON.stringify({ ...this.#head, ...fields });
    this.#reader.read({ event: null, data });
    return { kind, event: null, data };
  }
}

function readUsage(usage: JsonRecord) {
  return readAnswer(Buffer.from(JSON.stringify({ usage }))).usage;
}

function isAnswer(answer: JsonRecord | null): answer is JsonRecord {
  return (
    answer !== null &&
    (Array.isArray(answer["candidates"]) ||
      "promptFeedback" in answer ||
      "usageMetadata" in answer)
  );
}

/** A prompt that is blocked has no candidates. */
function candidatesOf(answer: JsonRecord): readonly JsonRecord[] {
  const candidates = recordsOf(answer["candidates"]);
  const { blockReason } = recordOf(answer["promptFeedback"]);
  return candidates.length === 0 && blockReason !== undefined
    ? [{ index: 0, finishReason: "SAFETY" }]
    : candidates;
}

function headOf(
  answer: JsonRecord,
  object: string,
  created = Math.floor(Date.now() / 1_000),
): JsonRecord {
  return {
    id: textOf(answer["responseId"]),
    object,
    created,
    model: textOf(answer["modelVersion"]),
  };
}

function searchesIn(answer: JsonRecord): number {
  return recordsOf(answer["candidates"])
    .map(({ groundingMetadata }) => recordOf(groundingMetadata))
    .map(({ webSearchQueries: queries }) =>
      Array.isArray(queries) ? queries.length : 0,
    )
    .reduce((sum, queries) => sum + queries, 0);
}

/** One candidate, whole or over the events of a stream. */
class Choice {
  #text = "";
  #calls = 0;
  #images = 0;
  #annotated = 0;
  finish: string | null = null;

  /** What the candidate adds to the message. */
  take(candidate: JsonRecord): JsonRecord {
    const parts = recordsOf(recordOf(candidate["content"])["parts"]);
    const texts = (isThought: boolean) =>
      parts
        .filter(({ thought }) => (thought === true) === isThought)
        .map(({ text }) => textOf(text))
        .join("");
    const content = texts(false);
    this.#text += content;
    const calls = parts
      .filter(({ functionCall }) => functionCall !== undefined)
      .map((part) => this.#call(part));
    const annotations = this.#annotations(
      recordOf(candidate["groundingMetadata"]),
    );
    const images = parts
      .filter(({ inlineData }) => inlineData !== undefined)
      .map((part) => this.#image(part));
    const reason = textOf(candidate["finishReason"]);
    this.finish = reason === "" ? null : this.#finishOf(reason);
    return present({
      content: content === "" ? null : content,
      reasoning_content: texts(true) || null,
      images: images.length === 0 ? null : images,
      tool_calls: calls.length === 0 ? null : calls,
      annotations: annotations.length === 0 ? null : annotations,
    });
  }

  #call({ functionCall, thoughtSignature }: JsonRecord): JsonRecord {
    const { id, name, args } = recordOf(functionCall);
    const index = this.#calls++;
    const google = { thought_signature: thoughtSignature };
    return {
      index,
      id: textOf(id) || `call_${crypto.randomUUID()}`,
      type: "function",
      function: { name, arguments: JSON.stringify(args ?? {}) },
      ...(thoughtSignature === undefined ? {} : { extra_content: { google } }),
    };
  }

  /** As LiteLLM and OpenRouter have it. */
  #image({ inlineData }: JsonRecord): JsonRecord {
    const { mimeType, data } = recordOf(inlineData);
    const url = `data:${textOf(mimeType)};base64,${textOf(data)}`;
    return { type: "image_url", image_url: { url }, index: this.#images++ };
  }

  /** Places are counted in bytes of the whole text. A later event of a stream repeats the earlier ones. */
  #annotations(metadata: JsonRecord): readonly JsonRecord[] {
    const chunks = recordsOf(metadata["groundingChunks"]);
    const bytes = Buffer.from(this.#text);
    const placeOf = (at: unknown) =>
      bytes.subarray(0, numberOf(at) ?? 0).toString("utf8").length;
    const all = recordsOf(metadata["groundingSupports"]).flatMap((support) => {
      const { startIndex, endIndex } = recordOf(support["segment"]);
      return recordsOf(
        [support["groundingChunkIndices"]]
          .flat()
          .map((at) => chunks[numberOf(at) ?? -1]),
      ).map(({ web, maps }) => {
        const { uri: url, title } = recordOf(web ?? maps);
        return {
          type: "url_citation",
          url_citation: {
            start_index: placeOf(startIndex),
            end_index: placeOf(endIndex),
            title: textOf(title),
            url,
          },
        };
      });
    });
    const added = all.slice(this.#annotated);
    this.#annotated = Math.max(this.#annotated, all.length);
    return added;
  }

  /** https://ai.google.dev/api/generate-content#FinishReason */
  #finishOf(reason: string): string {
    switch (reason) {
      case "MAX_TOKENS":
        return "length";
      case "SAFETY":
      case "RECITATION":
      case "BLOCKLIST":
      case "PROHIBITED_CONTENT":
      case "SPII":
      case "IMAGE_SAFETY":
        return "content_filter";
      default:
        return this.#calls > 0 ? "tool_calls" : "stop";
    }
  }
}

/** Thoughts and what tools of Google's read are counted separately. https://ai.google.dev/api/generate-content#UsageMetadata */
function usageOf(reported: unknown, searches: number): JsonRecord | null {
  const usage = recordOf(reported);
  const input = numberOf(usage["promptTokenCount"]);
  if (input === null) {
    return null;
  }
  const count = (name: string) => numberOf(usage[name]) ?? 0;
  const ofModality = (name: string, wanted: string) =>
    recordsOf(usage[name])
      .filter(({ modality }) => modality === wanted)
      .reduce((sum, { tokenCount }) => sum + (numberOf(tokenCount) ?? 0), 0);
  const modalities = (name: string) => ({
    audio_tokens: ofModality(name, "AUDIO"),
    image_tokens: ofModality(name, "IMAGE"),
    video_tokens: ofModality(name, "VIDEO"),
  });
  const prompt = input + count("toolUsePromptTokenCount");
  const reasoning = count("thoughtsTokenCount");
  const completion = count("candidatesTokenCount") + reasoning;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: count("cachedContentTokenCount"),
      ...modalities("promptTokensDetails"),
    },
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      image_tokens: ofModality("candidatesTokensDetails", "IMAGE"),
    },
    ...(searches === 0
      ? {}
      : { server_tool_use: { web_search_requests: searches } }),
  };
}
