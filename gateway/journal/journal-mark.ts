import fs from "node:fs";
import path from "node:path";
import { createLineEncoder, verifiedJson } from "./journal-line.ts";
import type { JournalMark } from "./journal-types.ts";
import { writeFully } from "./segment.ts";

const NAME = "acknowledged";
const NEWLINE = 0x0a;
/** Longer than any mark. */
const MAX_BYTES = 512;

/** Negative if the first mark is before the second, 0 if it is the same. */
export function compareMarks(
  one: Pick<JournalMark, "segment" | "offset">,
  other: Pick<JournalMark, "segment" | "offset">,
): number {
  return one.segment - other.segment || one.offset - other.offset;
}

/**
 * Remembers in the journal's directory up to where its rows are in the ledger. The file is never flushed: after a power cut an
 * older mark is read, or none, and rows are delivered again that the ledger has.
 */
export class AcknowledgedMark {
  readonly #encoder = createLineEncoder();
  readonly #path: string;
  #fd: number | null = null;
  #mark: JournalMark | null;

  constructor(directory: string) {
    this.#path = path.join(directory, NAME);
    this.#mark = readMark(this.#path);
  }

  get mark(): JournalMark | null {
    return this.#mark;
  }

  /** A mark that cannot be written is remembered by this process alone. */
  set(mark: JournalMark): void {
    this.#mark = mark;
    try {
      this.#fd ??= fs.openSync(
        this.#path,
        fs.constants.O_WRONLY | fs.constants.O_CREAT,
        0o600,
      );
      writeFully(this.#fd, this.#encoder.encode(JSON.stringify(mark)), 0);
    } catch {
      // The disk is full or broken; the journal reports that itself.
    }
  }

  close(): void {
    if (this.#fd !== null) {
      fs.closeSync(this.#fd);
    }
    this.#fd = null;
  }
}

/** When rows of the journal in a directory were last confirmed, in ms since the epoch; null: never. */
export function lastConfirmedAt(directory: string): number | null {
  const file = fs.statSync(path.join(directory, NAME), {
    throwIfNoEntry: false,
  });
  return file?.mtimeMs ?? null;
}

/** null: there is none, or none that can be trusted. */
function readMark(file: string): JournalMark | null {
  let bytes: Buffer;
  try {
    bytes = fs.readFileSync(file).subarray(0, MAX_BYTES);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") {
      return null;
    }
    throw error;
  }
  const json = verifiedJson(bytes, 0, Math.max(0, bytes.indexOf(NEWLINE)));
  return json === null ? null : (JSON.parse(json.toString()) as JournalMark);
}
