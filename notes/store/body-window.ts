import { isUtf8 } from "node:buffer";
import { Refusal } from "../refusal.ts";
import type { BodySource } from "./body-source.ts";
import {
  inspectDocumentAt,
  invalidJson,
  onlySpace,
  readDocument,
  type IncomingDocument,
} from "./incoming.ts";
import { INCOMPLETE, scanValue, skipSpace } from "./scan-json.ts";

/** Bytes of a spooled body in memory at a time, unless one document is longer. */
const WINDOW_BYTES = 1_048_576;
/** A document longer than this gets its own buffer. */
const MAX_SCRATCH_BYTES = 16_777_216;
const NOTHING = Buffer.alloc(0);

/** A document found in a `_bulk_docs` body; `read` reads it again from the source, once, before the next one is read. */
export interface BulkEntry {
  readonly id: string | undefined;
  /** Bytes of the body. */
  readonly size: number;
  readonly read: () => IncomingDocument;
}

/** Moves over a JSON body with one part of it in memory at a time. */
export class BodyWindow {
  readonly #source: BodySource;
  readonly #maxDocumentSize: number;
  /** Position of the window in the body. */
  #base = 0;
  /** Position in the window. */
  #at = 0;
  #bytes: Buffer;
  // Two alternating buffers, so that a long body leaves no garbage.
  #spare: Buffer = NOTHING;
  #scratch: Buffer = NOTHING;

  constructor(source: BodySource, maxDocumentSize: number) {
    this.#source = source;
    this.#maxDocumentSize = maxDocumentSize;
    this.#bytes = source.read(0, Math.min(WINDOW_BYTES, source.length));
  }

  /** The next byte that is not white space; undefined at the end. */
  peek(): number | undefined {
    for (;;) {
      this.#at = skipSpace(this.#bytes, this.#at);
      if (this.#at < this.#bytes.length) {
        return this.#bytes[this.#at];
      }
      if (this.#isLast()) {
        return undefined;
      }
      this.#refill();
    }
  }

  skip(): void {
    this.#at += 1;
  }

  /** The JSON text of the next value, valid until the window moves. Parsed, it could take many times its bytes in memory. */
  value(): Buffer {
    this.peek();
    for (;;) {
      const end = scanValue(this.#bytes, this.#at, this.#isLast());
      if (end === INCOMPLETE) {
        this.#refill();
        continue;
      }
      const text = this.#bytes.subarray(this.#at, end);
      if (end < 0 || !isUtf8(text)) {
        throw invalidJson();
      }
      this.#at = end;
      return text;
    }
  }

  document(): BulkEntry {
    this.peek();
    for (;;) {
      const found = inspectDocumentAt(this.#bytes, this.#at, this.#isLast());
      if (found === undefined) {
        this.#refill();
        continue;
      }
      const start = this.#base + this.#at;
      const stop = this.#base + found.end;
      this.#at = found.end;
      const { id, size } = found;
      return { id, size, read: () => this.#read(start, stop) };
    }
  }

  expectEnd(): void {
    if (!this.#isLast() || !onlySpace(this.#bytes, this.#at)) {
      throw invalidJson();
    }
  }

  /** Releases its buffers: the documents are read again from the source, so a long one would otherwise be in memory twice. */
  release(): void {
    this.#source.free(this.#bytes);
    this.#source.free(this.#spare);
    this.#bytes = NOTHING;
    this.#spare = NOTHING;
  }

  #isLast(): boolean {
    return this.#base + this.#bytes.length >= this.#source.length;
  }

  #refill(): void {
    if (this.#isLast()) {
      throw invalidJson();
    }
    const kept = this.#bytes.length - this.#at;
    if (kept > this.#maxDocumentSize * 1.25 + WINDOW_BYTES) {
      throw new Refusal("document_too_large", "");
    }
    this.#base += this.#at;
    this.#at = 0;
    const end = Math.min(
      this.#base + kept + Math.max(WINDOW_BYTES, kept),
      this.#source.length,
    );
    const next = this.#source.read(this.#base, end, this.#spare);
    if (next.buffer !== this.#spare.buffer) {
      this.#source.free(this.#spare);
    }
    this.#spare = this.#bytes;
    this.#bytes = next;
  }

  #read(start: number, stop: number): IncomingDocument {
    const size = stop - start;
    if (this.#scratch.length < size && size <= MAX_SCRATCH_BYTES) {
      this.#scratch = Buffer.allocUnsafeSlow(Math.max(WINDOW_BYTES, size));
    }
    return readDocument(this.#source.read(start, stop, this.#scratch));
  }
}
