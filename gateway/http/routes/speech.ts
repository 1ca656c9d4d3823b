import { z } from "zod";
import { out } from "../../admin/kinds/out.ts";
import type { CallBody } from "../../calls/body.ts";
import type { CallKind } from "../../calls/call.ts";
import { METADATA_FIELDS } from "../../calls/metadata.ts";
import { audioTokensOut } from "../../tokens/usage.ts";
import { callRoute, numberOf } from "./chat.ts";

/** The slowest speech: Chinese has few characters for long words. */
const SECONDS_PER_CHARACTER = 1 / 4;
/** Of OpenAI: https://platform.openai.com/docs/api-reference/audio/createSpeech#audio_createspeech-speed */
const MIN_SPEED = 0.25;

const SPEECH: CallKind = {
  route: "POST /v1/audio/speech",
  callType: "aspeech",
  endpoint: "speech",
  streams: true,
  bytes: true,
  shape: null,
  schema: z.looseObject({
    model: z.string(),
    input: z.string().min(1),
    voice: z
      .union([z.string(), z.looseObject({})], {
        error: "must be the name of a voice",
      })
      .nullish(),
    instructions: z.string().nullish(),
    response_format: z.string().nullish(),
    speed: z.number().positive().nullish(),
    stream_format: z.enum(["sse", "audio"]).nullish(),
    ...METADATA_FIELDS,
  }),
  countInput: (gateway, { input, instructions }, model) =>
    gateway.tokens.estimateText(`${input}${instructions ?? ""}`, model),
  estimateOutput: (_gateway, body) =>
    audioTokensOut(
      (charactersOf(body) * SECONDS_PER_CHARACTER) /
        Math.max(numberOf(body, "speed") ?? 1, MIN_SPEED),
    ),
  measure: (body) => ({
    piece: "characters",
    count: charactersOf(body),
    estimated: false,
  }),
};

/** As providers count them: an emoji is one. */
function charactersOf({ input }: CallBody): number {
  let characters = 0;
  for (const _ of String(input)) {
    characters++;
  }
  return characters;
}

/** POST /v1/audio/speech; the audio is passed on while it arrives. */
export const speech = callRoute(SPEECH, {
  summary:
    "Speak a text (OpenAI's API): audio, or its events with stream_format sse.",
  answer: out.text.meta({ format: "binary" }),
  contentType: "audio/mpeg",
  azure: true,
});
