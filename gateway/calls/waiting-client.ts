import type { StreamClient } from "../providers/stream-start.ts";

/** The client of a call that has not been answered. */
export interface WaitingClient {
  readonly connection: StreamClient;
  /** Aborted once it has left, and every identical call that waits for the same answer. */
  readonly left: AbortSignal;
  /** Sends the client of a stream the reason why it waits, after `afterMs` and then every 10 s, until the returned function is called. */
  notify(reason: () => string, afterMs: number): () => void;
}

/** Earlier answers keep their status and their headers; proxies give up on streams that send nothing, from 30 s on. */
export const NOTIFY_AFTER_MS = 25_000;

export function waitingFor(alias: string): string {
  return `waiting for ${alias}`;
}
