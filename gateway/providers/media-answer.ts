import {
  inputOnly,
  MAX_TOKENS,
  usageFromOpenAI,
  type Usage,
} from "../pricing/prices.ts";
import { isRecord, parseRecord, recordOf, textOf } from "../../core/json.ts";
import { createStreamReader } from "./openai.ts";
import type { SseEvent } from "../../core/sse.ts";
import {
  CUT_SHORT,
  type AnswerFacts,
  type Endpoint,
  type StreamPiece,
  type StreamTranslator,
} from "./wire.ts";

/** Images are billed per image, by tokens, or both, depending on the price. */
export function imageFacts(bytes: Buffer): AnswerFacts {
  const answer = parseRecord(bytes.toString("utf8"));
  const made = Array.isArray(answer?.["data"]) ? answer["data"].length : 0;
  return {
    usage: imageUsage(answer?.["usage"], made),
    responseId: null,
    text: "",
  };
}

export function imageUsage(reported: unknown, images: number): Usage {
  const usage = usageFromOpenAI(reported) ?? inputOnly(0);
  const parts = recordOf(reported)["output_tokens_details"];
  return {
    ...usage,
    images,
    // Without details, all output tokens of an image route are image tokens.
    ...(isRecord(parts) ? {} : { imageOutputTokens: usage.outputTokens }),
  };
}

/**
 * A transcript's usage in tokens or seconds, and its text. Where an answer has no usage, `verbose_json` has the duration;
 * text and subtitles have neither.
 */
export function transcriptFacts(bytes: Buffer): AnswerFacts {
  const text = bytes.toString("utf8");
  const answer = parseRecord(text);
  if (answer === null) {
    return { usage: null, responseId: null, text };
  }
  const usage = usageFromOpenAI(answer["usage"]);
  // Some servers write the number as text.
  const seconds = Number(answer["duration"]);
  const lasted = seconds > 0 && seconds <= MAX_TOKENS;
  return {
    usage:
      usage?.audioSeconds === undefined && lasted
        ? { ...(usage ?? inputOnly(0)), audioSeconds: seconds }
        : usage,
    responseId: null,
    text: textOf(answer["text"]),
  };
}

/** Without details, all output tokens of speech are audio. */
function speechUsage(usage: Usage): Usage {
  return usage.audioOutputTokens > 0
    ? usage
    : { ...usage, audioOutputTokens: usage.outputTokens };
}

const LAST_EVENTS = ["transcript.text.done", "speech.audio.done"];
const IMAGE_EVENT = /^image_(generation|edit)\.completed$/;
const PREVIEW_EVENT = /^image_(generation|edit)\.partial_image$/;

/**
 * Passes the events of transcripts, speech and images on unchanged. Those of images have no last event: each image is held
 * back until the next event.
 */
export function createMediaStream(endpoint: Endpoint): StreamTranslator {
  const reader = createStreamReader();
  const texts: string[] = [];
  const isImages = endpoint === "images" || endpoint === "image_edits";
  let images = 0;
  let isBegun = false;
  let imageTokens: Usage | null = null;
  let held: readonly StreamPiece[] = [];
  let ended = false;
  function push({ event, data }: SseEvent): readonly StreamPiece[] {
    const kind = reader.read({ event, data });
    const reported = parseRecord(data) ?? {};
    const type = textOf(reported["type"]);
    const before = held;
    held = [];
    if (type.endsWith(".delta")) {
      texts.push(textOf(reported["delta"]));
    }
    isBegun = PREVIEW_EVENT.test(type);
    if (IMAGE_EVENT.test(type)) {
      images++;
      imageTokens = sumOf(imageTokens, imageUsage(reported["usage"], images));
      held = [{ kind: "done", event, data }];
      return before.map((piece) => ({ ...piece, kind: "pass" as const }));
    }
    const last = kind === "done" || LAST_EVENTS.includes(type);
    const failed = kind === "error" || type === "error";
    ended ||= last || failed;
    return [
      ...before.map((piece) => ({ ...piece, kind: "pass" as const })),
      { kind: failed ? "error" : last ? "done" : "pass", event, data },
    ];
  }
  return {
    push,
    end() {
      if (held.length > 0) {
        return held;
      }
      return ended ? [] : [CUT_SHORT_EVENT];
    },
    facts() {
      const facts = reader.facts();
      const text = facts.text + texts.join("");
      if (isImages) {
        const begun = images + (isBegun ? 1 : 0);
        return {
          ...facts,
          usage: imageTokens && { ...imageTokens, images: begun },
          pieces: { images: begun },
          text: "",
        };
      }
      return endpoint === "speech"
        ? { ...facts, usage: facts.usage && speechUsage(facts.usage), text: "" }
        : { ...facts, text };
    },
  };
}

const CUT_SHORT_EVENT: StreamPiece = {
  kind: "error",
  event: "error",
  data: JSON.stringify({
    type: "error",
    error: { type: "server_error", message: CUT_SHORT },
  }),
};

/** The tokens of all images of a stream. */
function sumOf(before: Usage | null, { images = 0, ...added }: Usage): Usage {
  if (before === null) {
    return { ...added, images };
  }
  const sums = Object.entries(added).map(([name, count]) => [
    name,
    Number(count) + Number(before[name as keyof Usage] ?? 0),
  ]);
  return { ...(Object.fromEntries(sums) as unknown as Usage), images };
}
