import type { ChangesEnd } from "./protocol.ts";

/** A piece of a streamed body; an empty string yields to other requests. */
export type Piece = string | Uint8Array;

/** The result of an operation: a whole JSON text, or a body streamed in pieces. */
export type Answer =
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body: string;
    }
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly pieces: Generator<Piece, ChangesEnd | void>;
    };

/** An answer of one JSON value, followed by a line feed as in CouchDB. */
export function json(
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return { status, headers, body: `${JSON.stringify(value)}\n` };
}
