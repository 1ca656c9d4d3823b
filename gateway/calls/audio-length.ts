import { TimedWorker } from "../timed-worker.ts";

/** To measure; the reply is its seconds, or null. */
export interface AudioToMeasure {
  readonly bytes: Uint8Array;
  readonly name: string;
  readonly contentType: string;
}

/** A file can be made so that a parser never ends. */
const MAX_MS = 5_000;
const MAX_WAIT_MS = 5_000;
const MAX_HEAP_MB = 128;

const worker = new TimedWorker<AudioToMeasure, number | null>(
  new URL("./audio-length-worker.ts", import.meta.url),
  { maxMs: MAX_MS, maxWaitMs: MAX_WAIT_MS, maxHeapMb: MAX_HEAP_MB },
);

/** Seconds of an audio or video file; null where its format or its header does not tell. */
export function secondsOf(audio: AudioToMeasure): Promise<number | null> {
  return worker.run(audio).catch(() => null);
}
