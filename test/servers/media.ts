import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { MockInstructions } from "./mock-instructions.ts";

/** What a provider of audio, images or rankings answers: chunks of its body. */
interface MediaAnswer {
  readonly contentType: string;
  readonly chunks: readonly Buffer[];
}

type Body = Readonly<Record<string, unknown>>;

/** The answer of a media route in its provider's wire format; null for other routes. */
export function mediaAnswer(
  path: string,
  body: Body,
  instructions: MockInstructions,
): MediaAnswer | null {
  switch (path.replace(/^\/v[12]/, "").replace(/\?.*/, "")) {
    case "/audio/speech":
      return speech(body, instructions);
    case "/audio/transcriptions":
    case "/audio/translations":
      return transcript(body, instructions);
    case "/images/generations":
      return images("image_generation", body, instructions);
    case "/images/edits":
    case "/images/variations":
      return images("image_edit", body, instructions);
    case "/rerank":
      return json(ranking(path, body, instructions));
    default:
      return null;
  }
}

/** Sends it chunk by chunk, as the instructions say. */
export async function sendMedia(
  response: ServerResponse,
  { contentType, chunks }: MediaAnswer,
  { cutAfter, chunkDelayMs }: MockInstructions,
  finish: () => void,
): Promise<void> {
  response.writeHead(200, { "content-type": contentType });
  for (const [at, chunk] of chunks.entries()) {
    if (cutAfter === at) {
      return void response.destroy();
    }
    if (at === chunks.length - 1) {
      finish();
    }
    response.write(chunk);
    if (chunkDelayMs !== undefined) {
      await sleep(chunkDelayMs, undefined, { ref: false });
    }
  }
  response.end();
}

/** A form's fields, repeated ones as lists; files as their name, type and bytes in hex. */
export async function readForm(
  bytes: Buffer,
  contentType: string,
): Promise<Record<string, unknown>> {
  const form = await new Response(new Uint8Array(bytes), {
    headers: { "content-type": contentType },
  }).formData();
  const fields: Record<string, unknown> = {};
  for (const [name, value] of form.entries()) {
    const read =
      typeof value === "string"
        ? value
        : {
            name: value.name,
            type: value.type,
            hex: Buffer.from(await value.arrayBuffer()).toString("hex"),
          };
    fields[name] =
      fields[name] === undefined ? read : [fields[name], read].flat();
  }
  return fields;
}

/** A WAV file with silence: 8,000 samples of 8 bits a second. */
export function silence(seconds: number): Buffer {
  const samples = Math.round(seconds * 8_000);
  const header = Buffer.alloc(44);
  header.write("RIFF", 0);
  header.writeUInt32LE(36 + samples, 4);
  header.write("WAVEfmt ", 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(8_000, 24);
  header.writeUInt32LE(8_000, 28);
  header.writeUInt16LE(1, 32);
  header.writeUInt16LE(8, 34);
  header.write("data", 36);
  header.writeUInt32LE(samples, 40);
  return Buffer.concat([header, Buffer.alloc(samples, 0x80)]);
}

function json(answer: unknown): MediaAnswer {
  return {
    contentType: "application/json",
    chunks: [Buffer.from(JSON.stringify(answer))],
  };
}

function events(all: readonly Body[]): MediaAnswer {
  return {
    contentType: "text/event-stream",
    chunks: all.map((event) =>
      Buffer.from(`data: ${JSON.stringify(event)}\n\n`),
    ),
  };
}

const TOKENS = { input_tokens: 10, output_tokens: 40, total_tokens: 50 };

/** Four chunks of a WAV file of two seconds, or of raw samples. */
function speech(body: Body, { usage }: MockInstructions): MediaAnswer {
  const wav = silence(2);
  if (body["stream_format"] === "sse") {
    return events([
      { type: "speech.audio.delta", audio: wav.toString("base64") },
      { type: "speech.audio.done", usage: usage ?? TOKENS },
    ]);
  }
  const audio = body["response_format"] === "pcm" ? Buffer.alloc(96_000) : wav;
  const quarter = Math.ceil(audio.length / 4);
  return {
    contentType: body["response_format"] === "mp3" ? "audio/mpeg" : "audio/wav",
    chunks: [0, 1, 2, 3].map((at) =>
      audio.subarray(at * quarter, (at + 1) * quarter),
    ),
  };
}

const TEXT = "four words in here";

function transcript(body: Body, instructions: MockInstructions): MediaAnswer {
  const text = instructions.text ?? TEXT;
  const usage =
    instructions.usage === null
      ? {}
      : { usage: instructions.usage ?? { type: "duration", seconds: 3 } };
  if (body["stream"] === "true") {
    return events([
      { type: "transcript.text.delta", delta: text },
      { type: "transcript.text.done", text, ...usage },
    ]);
  }
  switch (body["response_format"]) {
    case "text":
      return plain("text/plain; charset=utf-8", `${text}\n`);
    case "srt":
      return plain(
        "text/plain; charset=utf-8",
        `1\n00:00:00,000 --> 00:00:02,000\n${text}\n`,
      );
    case "vtt":
      return plain(
        "text/vtt; charset=utf-8",
        `WEBVTT\n\n00:00:00.000 --> 00:00:02.000\n${text}\n`,
      );
    case "verbose_json":
      return json({
        task: "transcribe",
        language: "english",
        duration: 2.5,
        text,
        segments: [{ id: 0, start: 0, end: 2.5, text }],
      });
    default:
      return json({ text, ...usage });
  }
}

function plain(contentType: string, text: string): MediaAnswer {
  return { contentType, chunks: [Buffer.from(text)] };
}

const PICTURE = { b64_json: "iVBORw0KGgo=" };

function images(
  name: string,
  { n, stream, partial_images: partial }: Body,
  { usage }: MockInstructions,
): MediaAnswer {
  const made = Array.from({ length: Number(n ?? 1) }, () => PICTURE);
  if (String(stream) === "true") {
    return events(
      made.flatMap((one) => [
        ...(partial == null ? [] : [{ type: `${name}.partial_image`, ...one }]),
        { type: `${name}.completed`, ...one, usage: usage ?? TOKENS },
      ]),
    );
  }
  return json({ created: 1, data: made, ...(usage && { usage }) });
}

/** Longer documents are more relevant. Cohere's, Jina's, Voyage's or TEI's shape, by path and fields. */
function ranking(
  path: string,
  body: Body,
  { usage }: MockInstructions,
): unknown {
  const documents = (body["documents"] ?? body["texts"]) as readonly string[];
  const scores = documents.map((text, index) => ({
    index,
    score: text.length / 100,
  }));
  const best = scores.toSorted((one, other) => other.score - one.score);
  if (body["texts"] !== undefined) {
    return best;
  }
  const most = Number(body["top_n"] ?? body["top_k"] ?? best.length);
  const results = best
    .slice(0, most)
    .map(({ index, score }) => ({ index, relevance_score: score }));
  if (path.startsWith("/v2/")) {
    return {
      id: "rerank-mock",
      results,
      meta: {
        api_version: { version: "2" },
        billed_units: usage ?? { search_units: 1 },
      },
    };
  }
  return body["top_k"] === undefined
    ? {
        model: body["model"],
        object: "list",
        usage: usage ?? { prompt_tokens: 30, total_tokens: 30 },
        results,
      }
    : {
        object: "list",
        data: results,
        model: body["model"],
        usage: usage ?? { total_tokens: 30 },
      };
}
