import fs from "node:fs/promises";
import { verifiedJson } from "./journal-line.ts";
import type { Segment } from "./segment.ts";

const CHUNK_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

/** A position in the journal's files, at the start of a line, with the chunk of the file that was read around it. */
export class SegmentCursor {
  #segment: Segment;
  #file: fs.FileHandle | null = null;
  #offset = 0;
  #chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  #chunkOffset = 0;
  #chunkBytes = 0;

  constructor(segment: Segment) {
    this.#segment = segment;
  }

  get segment(): Segment {
    return this.#segment;
  }

  /** Where the next line starts. */
  get offset(): number {
    return this.#offset;
  }

  /** Continues at a later offset of the same segment. */
  skipTo(offset: number): void {
    this.#offset = offset;
  }

  /** Continues at the start of another segment. */
  async moveTo(segment: Segment): Promise<void> {
    await this.close();
    this.#segment = segment;
    this.#offset = this.#chunkOffset = this.#chunkBytes = 0;
  }

  /** Index in the chunk of the newline that ends the next line; -1 when it is not in there. */
  newlineInChunk(): number {
    const start = this.#offset - this.#chunkOffset;
    if (start >= this.#chunkBytes) {
      return -1;
    }
    const newline = this.#chunk.indexOf(NEWLINE, start);
    return newline < this.#chunkBytes ? newline : -1;
  }

  /** The JSON of the line that ends at `newline`, or null when it is damaged; moves behind it. */
  takeLine(newline: number): Buffer | null {
    const start = this.#offset - this.#chunkOffset;
    const json = verifiedJson(this.#chunk, start, newline);
    this.#offset = this.#chunkOffset + newline + 1;
    return json;
  }

  /** Reads the file from the offset on; false when no whole line is left before `end`. */
  async fill(end: number): Promise<boolean> {
    do {
      if (
        this.#offset === this.#chunkOffset &&
        this.#chunkBytes === this.#chunk.length
      ) {
        // A line longer than the chunk.
        this.#chunk = Buffer.allocUnsafe(this.#chunk.length * 2);
      }
      this.#file ??= await fs.open(this.#segment.path, "r");
      const wanted = Math.min(this.#chunk.length, end - this.#offset);
      const { bytesRead } = await this.#file.read(
        this.#chunk,
        0,
        wanted,
        this.#offset,
      );
      this.#chunkOffset = this.#offset;
      this.#chunkBytes = bytesRead;
      if (this.newlineInChunk() !== -1) {
        return true;
      }
    } while (
      this.#chunkBytes === this.#chunk.length &&
      this.#offset + this.#chunkBytes < end
    );
    return false;
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = null;
  }
}
