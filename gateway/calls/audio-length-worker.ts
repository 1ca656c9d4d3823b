import { parentPort } from "node:worker_threads";
import { parseBuffer } from "music-metadata";
import { READY } from "../timed-worker.ts";
import type { AudioToMeasure } from "./audio-length.ts";

/** Answers each file with its seconds, or null. */
parentPort?.on("message", (audio: AudioToMeasure) => {
  secondsIn(audio).then(
    (seconds) => parentPort?.postMessage(seconds),
    () => parentPort?.postMessage(null),
  );
});

async function secondsIn({
  bytes,
  name,
  contentType,
}: AudioToMeasure): Promise<number | null> {
  const { format } = await parseBuffer(
    bytes,
    {
      path: name,
      size: bytes.length,
      ...(/^(audio|video)\//.test(contentType)
        ? { mimeType: contentType }
        : {}),
    },
    { duration: true, skipCovers: true, skipPostHeaders: true },
  );
  const { duration } = format;
  return duration !== undefined && Number.isFinite(duration) && duration > 0
    ? duration
    : null;
}

parentPort?.postMessage(READY);
