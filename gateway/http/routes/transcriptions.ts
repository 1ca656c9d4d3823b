import { z } from "zod";
import { out } from "../../admin/kinds/out.ts";
import { secondsOf } from "../../calls/audio-length.ts";
import type { CallBody } from "../../calls/body.ts";
import type { CallKind } from "../../calls/call.ts";
import { UploadedFile } from "../../calls/uploaded-file.ts";
import { audioTokensIn } from "../../tokens/usage.ts";
import { callRoute } from "./chat.ts";
import { COMMON_FIELDS, file, flag, text } from "./form-fields.ts";

/** Of the lowest bitrate that speech is sent with (Opus, 6 kbit/s): a file is not longer than this. */
const MIN_BYTES_PER_SECOND = 750;
/** Text tokens of the fastest speech. */
const TOKENS_PER_SECOND = 8;

/** What both kinds of calls share. */
const OF_AUDIO = {
  shape: null,
  takesFiles: true,
  schema: z.looseObject({
    ...COMMON_FIELDS,
    file,
    prompt: text.optional(),
    response_format: text.optional(),
    stream: flag.optional(),
  }),
  async prepare({ file: audio }) {
    if (audio instanceof UploadedFile) {
      audio.seconds = await secondsOf(audio);
    }
  },
  countInput: (gateway, body, model) =>
    audioTokensIn(lengthOf(body)) +
    gateway.tokens.estimateText(String(body["prompt"] ?? ""), model),
  estimateOutput: (_gateway, body) =>
    Math.ceil(lengthOf(body) * TOKENS_PER_SECOND),
  measure: (body) => ({
    piece: "audioSeconds",
    count: lengthOf(body),
    estimated: true,
  }),
} satisfies Partial<CallKind>;

/** Seconds of the file; where it does not tell, the longest that it can be. Never longer than that, which a wrong header could say. */
function lengthOf({ file: audio }: CallBody): number {
  if (!(audio instanceof UploadedFile)) {
    return 0;
  }
  const longest = audio.bytes.length / MIN_BYTES_PER_SECOND;
  return Math.min(audio.seconds ?? longest, longest);
}

const TRANSCRIPTION: CallKind = {
  ...OF_AUDIO,
  route: "POST /v1/audio/transcriptions",
  callType: "atranscription",
  endpoint: "transcriptions",
  streams: true,
};

const TRANSLATION: CallKind = {
  ...OF_AUDIO,
  route: "POST /v1/audio/translations",
  callType: "atranslation",
  endpoint: "translations",
  streams: false,
};

const transcript = z.looseObject({ text: out.text }).meta({ id: "Transcript" });

/** POST /v1/audio/transcriptions; forwarded as sent, as are answers as text or subtitles. */
export const transcriptions = callRoute(TRANSCRIPTION, {
  summary: "Transcribe a recording (OpenAI's API): a form with a file.",
  answer: transcript,
  azure: true,
});

/** POST /v1/audio/translations */
export const translations = callRoute(TRANSLATION, {
  summary:
    "Translate a recording to English text (OpenAI's API): a form with a file.",
  answer: transcript,
  azure: true,
});
