/** How to answer one call, as JSON after `[mock]` in the last message (or in the embedding's input). */
export interface MockInstructions {
  readonly status?: number;
  readonly error?: unknown;
  readonly retryAfter?: number;
  readonly delayMs?: number;
  readonly chunks?: number;
  readonly chunkDelayMs?: number;
  /** Chunks after which the connection is cut. */
  readonly cutAfter?: number;
  /** Delay between a stream's `finish_reason` and its usage. */
  readonly usageDelayMs?: number;
  readonly usage?: Readonly<Record<string, unknown>> | null;
  readonly text?: string;
  /** The field of a stream's chunks that has their text; default: `content`. */
  readonly field?: string;
  /** The answer to a call at this path, as of a server that does not know it. */
  readonly unknownPath?: {
    readonly path: string;
    readonly status: number;
    readonly text: string;
  };
  /** Sent with the answer. */
  readonly headers?: Readonly<Record<string, string>>;
}
