import {
  inputOnly,
  MAX_TOKENS,
  usageFromOpenAI,
  type Usage,
} from "../tokens/reported-usage.ts";
import { isRecord, parseRecord, recordOf, textOf } from "../../core/json.ts";
import { imageTokensOf } from "../tokens/image-tokens.ts";
import { AudioCollector } from "../tokens/spoken-audio.ts";
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
  const spoken = new AudioCollector();
  const isImages = endpoint === "images" || endpoint === "image_edits";
  let images = 0;
  let imageTokens: Usage | null = null;
  /** The tokens of an image of which only previews have arrived, at most; null: there is none. */
  let begunTokens: number | null = null;
  let held: readonly StreamPiece[] = [];
  let ended = false;
  function push({ event, data }: SseEvent): readonly StreamPiece[] {
    const kind = reader.read({ event, data });
    const reported = parseRecord(data) ?? {};
    const type = textOf(reported["type"]);
    const before = held.map((piece) => ({ ...piece, kind: "pass" as const }));
    held = [];
    if (type.endsWith(".delta")) {
      texts.push(textOf(reported["delta"]));
      spoken.add(textOf(reported["audio"]));
    }
    if (PREVIEW_EVENT.test(type)) {
      begunTokens = imageTokensOf(reported["quality"]);
    }
    if (IMAGE_EVENT.test(type)) {
      begunTokens = null;
      images++;
      imageTokens = sumOf(imageTokens, imageUsage(reported["usage"], images));
      held = [{ kind: "done", event, data }];
      return before;
    }
    const last = kind === "done" || LAST_EVENTS.includes(type);
    const failed = kind === "error" || type === "error";
    ended ||= last || failed;
    begunTokens = failed ? null : begunTokens;
    return [
      ...before,
      { kind: failed ? "error" : last ? "done" : "pass", event, data },
    ];
  }
  return {
    push,
    end: () => (held.length > 0 || ended ? held : [CUT_SHORT_EVENT]),
    facts() {
      const facts = reader.facts();
      const text = facts.text + texts.join("");
      if (isImages) {
        return { ...facts, ...imagesSoFar(imageTokens, begunTokens), text: "" };
      }
      return endpoint === "speech"
        ? {
            ...facts,
            usage: facts.usage && speechUsage(facts.usage),
            text: "",
            spoken,
          }
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

/** What is billed of images: those that were reported, and one of which only previews have arrived. */
function imagesSoFar(
  reported: Usage | null,
  begunTokens: number | null,
): Pick<AnswerFacts, "usage" | "pieces"> {
  if (begunTokens === null) {
    return { usage: reported };
  }
  const tokens = { outputTokens: begunTokens, imageOutputTokens: begunTokens };
  const images = (reported?.images ?? 0) + 1;
  const sum = sumOf(reported, { ...inputOnly(0), ...tokens, images });
  return reported === null
    ? { usage: null, pieces: { ...tokens, images, estimated: true } }
    : { usage: { ...sum, estimated: true } };
}

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
