import type { Usage } from "../tokens/reported-usage.ts";

/** An answer in the cache: as it went over the wire, and what it cost the first time. */
export interface CachedAnswer {
  readonly contentType: string;
  readonly usage: Usage;
  /** Dollars. */
  readonly cost: number;
  readonly responseId: string | null;
  readonly body: Buffer;
}

const NEWLINE = 0x0a;

/** One line of JSON, then the body's bytes. */
export function encodeAnswer({ body, ...head }: CachedAnswer): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), body]);
}

/** null for bytes that are not ours. */
export function decodeAnswer(bytes: Buffer): CachedAnswer | null {
  const end = bytes.indexOf(NEWLINE);
  if (end < 0) {
    return null;
  }
  try {
    const head = JSON.parse(bytes.toString("utf8", 0, end)) as Omit<
      CachedAnswer,
      "body"
    >;
    return { ...head, body: bytes.subarray(end + 1) };
  } catch {
    return null;
  }
}
