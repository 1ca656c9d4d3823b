import type { Measure } from "../pricing/measure.ts";
import type { CallKind } from "./call.ts";
import { UploadedFile } from "./uploaded-file.ts";

/** The smallest call to a model. */
interface Probe extends Pick<CallKind, "endpoint" | "takesFiles"> {
  readonly body: Readonly<Record<string, unknown>>;
  readonly measure?: Measure;
}

const PROMPT = "ping";
const SECONDS = 0.2;

const CHAT: Probe = {
  endpoint: "chat",
  body: { max_tokens: 1, messages: [{ role: "user", content: PROMPT }] },
};

const PROBES: ReadonlyMap<string, Probe> = new Map<string, Probe>([
  ["embedding", { endpoint: "embeddings", body: { input: PROMPT } }],
  [
    "rerank",
    {
      endpoint: "rerank",
      body: { query: PROMPT, documents: [PROMPT] },
      measure: { piece: "searchUnits", count: 1, estimated: false },
    },
  ],
  [
    "audio_speech",
    {
      endpoint: "speech",
      body: { input: PROMPT, voice: "alloy" },
      measure: { piece: "characters", count: PROMPT.length, estimated: false },
    },
  ],
  [
    "audio_transcription",
    {
      endpoint: "transcriptions",
      takesFiles: true,
      body: { file: new UploadedFile("ping.wav", "audio/wav", silence()) },
      measure: { piece: "audioSeconds", count: SECONDS, estimated: true },
    },
  ],
]);

/** By `model_info.mode`; models of other modes are asked to chat. */
export function probeFor(mode: string): Probe {
  return PROBES.get(mode) ?? CHAT;
}

/** A WAV file without sound: 16,000 samples of 16 bits a second. */
function silence(): Buffer {
  const bytes = 2 * 16_000 * SECONDS;
  const file = Buffer.alloc(44 + bytes);
  file.write("RIFF", 0);
  file.writeUInt32LE(36 + bytes, 4);
  file.write("WAVEfmt ", 8);
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(1, 22);
  file.writeUInt32LE(16_000, 24);
  file.writeUInt32LE(32_000, 28);
  file.writeUInt16LE(2, 32);
  file.writeUInt16LE(16, 34);
  file.write("data", 36);
  file.writeUInt32LE(bytes, 40);
  return file;
}
