import { write, writeSync } from "node:fs";

/** Lines that may wait behind a write in progress, in bytes; further ones are dropped. */
const MAX_WAITING_BYTES = 4_194_304;
/** A pipe with a slow reader is retried, without blocking for longer than a second. */
const RETRY_MS = 50;
const MAX_BLOCKING_RETRIES = 20;
const LINE_FEED = 0x0a;
const WARNING_LEVEL = 40;

interface LogOutputOptions {
  /** Whether a line is in the file when `write` returns. */
  readonly sync: boolean;
  readonly now?: () => number | string;
}

interface Batch {
  readonly bytes: Buffer;
  readonly lines: number;
  /** The number of dropped lines that its first line reports. */
  readonly reported: number;
}

let dropped = 0;

/** The number of lines that this process could not write so far. */
export const droppedLogLines = (): number => dropped;

/**
 * A destination for pino. pino's own one ends the process on a full disk with an unhandled error, and its flush at exit then
 * retries forever. This one drops and counts lines that cannot be written, and reports the count once there is space again.
 */
export function openLogOutput(
  fd: number,
  { sync, now = Date.now }: LogOutputOptions,
): LogOutput {
  const output = new LogOutput(fd, sync, now);
  process.on("exit", output.flushSync);
  return output;
}

class LogOutput {
  readonly #fd: number;
  readonly #sync: boolean;
  readonly #now: () => number | string;
  #waiting: string[] = [];
  #waitingBytes = 0;
  #unreported = 0;
  #isLineCut = false;
  #isWriting = false;

  constructor(fd: number, sync: boolean, now: () => number | string) {
    this.#fd = fd;
    this.#sync = sync;
    this.#now = now;
  }

  // Bound: loggers pass both on as plain functions.
  readonly write = (line: string): void => {
    if (this.#waitingBytes > MAX_WAITING_BYTES) {
      this.#drop(1);
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
    if (this.#sync) {
      this.flushSync();
    } else if (!this.#isWriting) {
      this.#writeInBackground(this.#takeBatch(), 0);
    }
  };

  /** Writes all waiting lines before it returns. Also runs at exit. */
  readonly flushSync = (): void => {
    if (this.#waiting.length > 0) {
      const batch = this.#takeBatch();
      this.#settle(batch, writeBlocking(this.#fd, batch.bytes));
    }
  };

  #drop(lines: number): void {
    dropped += lines;
    this.#unreported += lines;
  }

  #takeBatch(): Batch {
    const text = [
      this.#isLineCut ? "\n" : "",
      this.#unreported > 0 ? reportOf(this.#unreported, this.#now()) : "",
      ...this.#waiting,
    ].join("");
    const { length: lines } = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    return { bytes: Buffer.from(text), lines, reported: this.#unreported };
  }

  #settle(batch: Batch, written: number): void {
    const unwritten = linesIn(batch.bytes.subarray(written));
    if (written > 0) {
      this.#isLineCut = batch.bytes[written - 1] !== LINE_FEED;
    }
    // The report is the first line of the batch.
    if (unwritten <= batch.lines) {
      this.#unreported -= batch.reported;
    }
    this.#drop(Math.min(unwritten, batch.lines));
  }

  #writeInBackground(batch: Batch, written: number): void {
    this.#isWriting = true;
    write(this.#fd, batch.bytes, written, (failure, count) => {
      if (failure !== null && isBusy(failure)) {
        setTimeout(() => this.#writeInBackground(batch, written), RETRY_MS);
        return;
      }
      const end = written + (failure === null ? count : 0);
      if (failure === null && end < batch.bytes.length) {
        this.#writeInBackground(batch, end);
        return;
      }
      this.#settle(batch, end);
      this.#isWriting = false;
      if (this.#waiting.length > 0) {
        this.#writeInBackground(this.#takeBatch(), 0);
      }
    });
  }
}

/** Returns the number of bytes that could be written. */
function writeBlocking(fd: number, bytes: Buffer): number {
  let written = 0;
  let retries = 0;
  while (written < bytes.length) {
    try {
      written += writeSync(fd, bytes, written);
    } catch (failure) {
      if (!isBusy(failure) || retries === MAX_BLOCKING_RETRIES) {
        break;
      }
      retries += 1;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
    }
  }
  return written;
}

function isBusy(failure: unknown): boolean {
  const { code } = failure as NodeJS.ErrnoException;
  return code === "EAGAIN" || code === "EBUSY";
}

function linesIn(bytes: Buffer): number {
  let lines = 0;
  for (const byte of bytes) {
    if (byte === LINE_FEED) {
      lines += 1;
    }
  }
  return lines;
}

function reportOf(lines: number, time: number | string): string {
  const msg = `${lines} log ${lines === 1 ? "line was" : "lines were"} dropped because the log could not be written`;
  return `${JSON.stringify({ level: WARNING_LEVEL, time, msg })}\n`;
}
