import { closeSync, openSync, readSync } from "node:fs";
import { isUtf8 } from "node:buffer";
import { Refusal } from "../refusal.ts";
import {
  inspectDocumentAt,
  invalidJson,
  onlySpace,
  readDocument,
  type DocumentHead,
  type IncomingDocument,
} from "./incoming.ts";
import type { Body } from "./protocol.ts";
import { bodyBytes } from "./query.ts";
import { INCOMPLETE, scanValue, skipSpace } from "./scan-json.ts";

/** Bytes of a spooled body held at a time, unless one document is longer. */
const WINDOW_BYTES = 1_048_576;
/** A longer document than this gets a buffer of its own. */
const MAX_SCRATCH_BYTES = 16_777_216;
const NOTHING = Buffer.alloc(0);

/** A document found in a `_bulk_docs` body; `read` brings it again from where it lies, once, until the next one is read. */
export interface BulkEntry {
  readonly head: DocumentHead;
  readonly read: () => IncomingDocument;
}

export interface BulkBody {
  readonly entries: readonly BulkEntry[];
  readonly newEdits: boolean;
  readonly close: () => void;
}

/** Goes through a `_bulk_docs` body without holding all of it: each document is checked, and read again when it is written. */
export async function readBulkBody(
  body: Body | undefined,
  maxDocumentSize: number,
  breathe: () => Promise<void>,
): Promise<BulkBody> {
  const source = openSource(body);
  try {
    return {
      ...(await scan(source, maxDocumentSize, breathe)),
      close: source.close,
    };
  } catch (failure) {
    source.close();
    throw failure;
  }
}

interface Source {
  readonly length: number;
  /** The bytes from `start` to `end`, in `into` if it is long enough and in a new buffer otherwise. */
  readonly read: (start: number, end: number, into?: Buffer) => Buffer;
  /** Gives the room of a buffer back at once; the garbage collector would let several of 50 MB come together first. */
  readonly free: (bytes: Buffer) => void;
  readonly close: () => void;
}

function openSource(body: Body | undefined): Source {
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
      if (buffer !== NOTHING.buffer) {
        (buffer as ArrayBuffer).transfer(0);
      }
    },
    close: () => closeSync(file),
  };
}

async function scan(
  source: Source,
  maxDocumentSize: number,
  breathe: () => Promise<void>,
): Promise<Omit<BulkBody, "close">> {
  const window = openWindow(source, maxDocumentSize);
  const entries: BulkEntry[] = [];
  let docsSeen = false;
  let newEdits: unknown = true;

  if (window.peek() !== 0x7b) {
    window.value();
    throw new Refusal("bad_request", "Request body must be a JSON object");
  }
  window.skip();
  let more = window.peek() !== 0x7d;
  while (more) {
    const key = window.value();
    if (typeof key !== "string" || window.peek() !== 0x3a) {
      throw invalidJson();
    }
    window.skip();
    if (key === "docs") {
      docsSeen = true;
      entries.length = 0;
      if (window.peek() === undefined) {
        throw invalidJson();
      }
      if (window.peek() !== 0x5b) {
        throw new Refusal("bad_request", "`docs` parameter must be an array.");
      }
      window.skip();
      while (window.peek() !== 0x5d) {
        entries.push(window.document());
        await breathe();
        if (window.peek() === 0x2c) {
          window.skip();
          if (window.peek() === 0x5d) {
            throw invalidJson();
          }
        } else if (window.peek() !== 0x5d) {
          throw invalidJson();
        }
      }
      window.skip();
    } else {
      const value = window.value();
      if (key === "new_edits") {
        newEdits = value;
      }
    }
    more = window.peek() === 0x2c;
    if (more) {
      window.skip();
      if (window.peek() !== 0x22) {
        throw invalidJson();
      }
    }
  }
  if (window.peek() !== 0x7d) {
    throw invalidJson();
  }
  window.skip();
  window.expectEnd();
  window.release();
  if (!docsSeen) {
    throw new Refusal(
      "bad_request",
      "POST body must include `docs` parameter.",
    );
  }
  if (typeof newEdits !== "boolean") {
    throw new Refusal(
      "bad_request",
      "`new_edits` parameter must be a boolean.",
    );
  }
  return { entries, newEdits };
}

interface Window {
  /** The next byte that is no white space; undefined at the end. */
  readonly peek: () => number | undefined;
  readonly skip: () => void;
  readonly value: () => unknown;
  readonly document: () => BulkEntry;
  readonly expectEnd: () => void;
  /** Gives its buffers up: the documents are read again from the source, and a long one would lie in memory twice. */
  readonly release: () => void;
}

function openWindow(source: Source, maxDocumentSize: number): Window {
  let base = 0;
  let at = 0;
  let bytes: Buffer = source.read(0, Math.min(WINDOW_BYTES, source.length));
  // Two buffers take turns, so that a long body leaves no trail of memory.
  let spare: Buffer = NOTHING;
  let scratch: Buffer = NOTHING;
  const final = (): boolean => base + bytes.length >= source.length;

  const refill = (): void => {
    if (final()) {
      throw invalidJson();
    }
    const kept = bytes.length - at;
    if (kept > maxDocumentSize * 1.25 + WINDOW_BYTES) {
      throw new Refusal("document_too_large", "");
    }
    base += at;
    at = 0;
    const end = Math.min(
      base + kept + Math.max(WINDOW_BYTES, kept),
      source.length,
    );
    const next = source.read(base, end, spare);
    if (next.buffer !== spare.buffer) {
      source.free(spare);
    }
    spare = bytes;
    bytes = next;
  };

  const peek = (): number | undefined => {
    for (;;) {
      at = skipSpace(bytes, at);
      if (at < bytes.length) {
        return bytes[at];
      }
      if (final()) {
        return undefined;
      }
      refill();
    }
  };

  return {
    peek,
    skip: () => {
      at += 1;
    },
    value: () => {
      peek();
      for (;;) {
        const end = scanValue(bytes, at, final());
        if (end === INCOMPLETE) {
          refill();
          continue;
        }
        if (end < 0 || !isUtf8(bytes.subarray(at, end))) {
          throw invalidJson();
        }
        const value = JSON.parse(bytes.toString("utf8", at, end)) as unknown;
        at = end;
        return value;
      }
    },
    document: () => {
      peek();
      for (;;) {
        const found = inspectDocumentAt(bytes, at, final());
        if (found === undefined) {
          refill();
          continue;
        }
        const [start, stop] = [base + at, base + found.end];
        at = found.end;
        return {
          head: found.head,
          read: () => {
            const size = stop - start;
            if (scratch.length < size && size <= MAX_SCRATCH_BYTES) {
              scratch = Buffer.allocUnsafeSlow(Math.max(WINDOW_BYTES, size));
            }
            return readDocument(source.read(start, stop, scratch));
          },
        };
      }
    },
    expectEnd: () => {
      if (!final() || !onlySpace(bytes, at)) {
        throw invalidJson();
      }
    },
    release: () => {
      source.free(bytes);
      source.free(spare);
      bytes = NOTHING;
      spare = NOTHING;
    },
  };
}
