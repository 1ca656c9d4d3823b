import type { JsonRecord } from "../../core/json.ts";
import type { StreamPiece } from "./wire.ts";

/** The fields that all chunks of an answer share. */
export interface ChunkHead {
  readonly id: unknown;
  /** Seconds since the epoch. */
  readonly created: unknown;
  readonly model: unknown;
}

/** A chunk of OpenAI's shape. The last one has a finish reason. */
export function deltaChunk(
  head: ChunkHead,
  delta: JsonRecord,
  reason: string | null,
): StreamPiece {
  const choice = { index: 0, delta, finish_reason: reason };
  return chunk("pass", head, { choices: [choice] });
}

export function usageChunk(head: ChunkHead, usage: JsonRecord): StreamPiece {
  return chunk("usage_only", head, { choices: [], usage });
}

function chunk(
  kind: StreamPiece["kind"],
  { id, created, model }: ChunkHead,
  fields: JsonRecord,
): StreamPiece {
  const object = "chat.completion.chunk";
  const data = JSON.stringify({ id, object, created, model, ...fields });
  return { kind, event: null, data };
}
