import type { ChangesEnd } from "./protocol.ts";

/** A piece of a streamed body; an empty string is a chance for other requests to run. */
export type Piece = string | Uint8Array;

/** What an operation answers: a whole JSON text, or pieces of a body that is sent as they come. */
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

/** An answer of one JSON value, with the line feed CouchDB ends it with. */
export function json(
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return { status, headers, body: `${JSON.stringify(value)}\n` };
}
