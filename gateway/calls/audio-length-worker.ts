import { parseBuffer } from "music-metadata";
import { answerTasks } from "../timed-worker.ts";
import type { AudioToMeasure } from "./audio-length.ts";

answerTasks((audio: AudioToMeasure) => secondsIn(audio).catch(() => null));

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
