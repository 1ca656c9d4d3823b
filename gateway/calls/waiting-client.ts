import type { StreamClient } from "../providers/stream-start.ts";

/** The client of a call that has not been answered. */
export interface WaitingClient {
  readonly connection: StreamClient;
  /** Aborted once it has left, and every identical call that waits for the same answer. */
  readonly left: AbortSignal;
  /** Tells the client of a stream why it waits, after `afterMs` and then every 10 s, until the returned function is called. */
  tell(reason: () => string, afterMs: number): () => void;
}

export function waitingFor(alias: string): string {
  return `waiting for ${alias}`;
}
