import { closeSync, openSync, readSync } from "node:fs";
import type { Body } from "./protocol.ts";
import { bodyBytes } from "./query.ts";

/** The bytes of a received body, in memory or in a file. */
export interface BodySource {
  readonly length: number;
  /** Reads the bytes from `start` to `end`: into `into` if it is long enough, otherwise into a new buffer. */
  readonly read: (start: number, end: number, into?: Buffer) => Buffer;
  /** Frees a buffer at once: the garbage collector would let several of 50 MB accumulate. */
  readonly free: (bytes: Buffer) => void;
  readonly close: () => void;
}

export function openSource(body: Body | undefined): BodySource {
  if (body?.kind !== "file") {
    const bytes = bodyBytes(body);
    return {
      length: bytes.length,
      read: (start, end) => bytes.subarray(start, end),
      free: () => undefined,
      close: () => undefined,
    };
  }
  const file = openSync(body.path, "r");
  return {
    length: body.length,
    read: (start, end, into) => {
      const length = end - start;
      const bytes =
        into !== undefined && into.length >= length
          ? into.subarray(0, length)
          : Buffer.allocUnsafeSlow(length);
      let filled = 0;
      while (filled < bytes.length) {
        const count = readSync(
          file,
          bytes,
          filled,
          bytes.length - filled,
          start + filled,
        );
        if (count === 0) {
          throw new Error("a spooled request body became shorter");
        }
        filled += count;
      }
      return bytes;
    },
    free: ({ buffer }) => {
      if (buffer.byteLength > 0) {
        (buffer as ArrayBuffer).transfer(0);
      }
    },
    close: () => closeSync(file),
  };
}
