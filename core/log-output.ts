import { write, writeSync } from "node:fs";

/** Waiting behind a write under way; what comes on top is dropped. */
const MAX_WAITING_BYTES = 4_194_304;
/** A pipe whose reader is slow is tried again, without blocking for longer than a second. */
const RETRY_MS = 50;
const MAX_BLOCKING_RETRIES = 20;
const LINE_FEED = 0x0a;
const WARNING_LEVEL = 40;

export interface LogOutput {
  readonly write: (line: string) => void;
  /** Writes what is waiting before it returns. Runs at exit, too. */
  readonly flushSync: () => void;
}

export interface LogOutputOptions {
  /** Whether a line is in the file when `write` returns. */
  readonly sync: boolean;
  readonly now?: () => number | string;
}

interface Batch {
  readonly bytes: Buffer;
  readonly lines: number;
  /** How many dropped lines its first line reports. */
  readonly reported: number;
}

let dropped = 0;

/** Lines that this process could not write so far. */
export const droppedLogLines = (): number => dropped;

/**
 * What pino writes to. Its own destination ends the process on a full disk with an unhandled error, and the flush at exit then
 * tries again forever. Here lines that cannot be written are dropped and counted; once there is room again, a line says how many.
 */
export function openLogOutput(
  fd: number,
  { sync, now = Date.now }: LogOutputOptions,
): LogOutput {
  let waiting: string[] = [];
  let waitingBytes = 0;
  let unreported = 0;
  let isLineCut = false;
  let isWriting = false;

  const drop = (lines: number): void => {
    dropped += lines;
    unreported += lines;
  };

  const takeBatch = (): Batch => {
    const text = [
      isLineCut ? "\n" : "",
      unreported > 0 ? reportOf(unreported, now()) : "",
      ...waiting,
    ].join("");
    const { length: lines } = waiting;
    waiting = [];
    waitingBytes = 0;
    return { bytes: Buffer.from(text), lines, reported: unreported };
  };

  const settle = (batch: Batch, written: number): void => {
    const unwritten = linesIn(batch.bytes.subarray(written));
    if (written > 0) {
      isLineCut = batch.bytes[written - 1] !== LINE_FEED;
    }
    // The report comes first.
    if (unwritten <= batch.lines) {
      unreported -= batch.reported;
    }
    drop(Math.min(unwritten, batch.lines));
  };

  const writeNow = (): void => {
    if (waiting.length === 0) {
      return;
    }
    const batch = takeBatch();
    settle(batch, writeBlocking(fd, batch.bytes));
  };

  const writeInBackground = (batch: Batch, written: number): void => {
    isWriting = true;
    write(fd, batch.bytes, written, (failure, count) => {
      if (failure !== null && isBusy(failure)) {
        setTimeout(writeInBackground, RETRY_MS, batch, written);
        return;
      }
      const end = written + (failure === null ? count : 0);
      if (failure === null && end < batch.bytes.length) {
        writeInBackground(batch, end);
        return;
      }
      settle(batch, end);
      isWriting = false;
      if (waiting.length > 0) {
        writeInBackground(takeBatch(), 0);
      }
    });
  };

  process.on("exit", writeNow);
  return {
    write: (line) => {
      if (waitingBytes > MAX_WAITING_BYTES) {
        drop(1);
        return;
      }
      waiting.push(line);
      waitingBytes += line.length;
      if (sync) {
        writeNow();
      } else if (!isWriting) {
        writeInBackground(takeBatch(), 0);
      }
    },
    flushSync: writeNow,
  };
}

/** How many of the bytes could be written. */
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
