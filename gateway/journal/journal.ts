import fs from "node:fs/promises";
import { textOf } from "../../core/failure.ts";
import { instanceOf } from "./journal-instance.ts";
import { lockJournal } from "./journal-lock.ts";
import { AcknowledgedMark } from "./journal-mark.ts";
import { JournalReader } from "./journal-reader.ts";
import { recoverSegments } from "./journal-recovery.ts";
import { JournalTail } from "./journal-tail.ts";
import { JournalWriter } from "./journal-writer.ts";
import type {
  Journal,
  JournalOptions,
  Recorded,
  Started,
} from "./journal-types.ts";
import { SegmentedJournal } from "./segmented-journal.ts";
import { openSegments, type SegmentsOptions } from "./segments.ts";

const MEBIBYTE = 1024 * 1024;
const DEFAULT_SEGMENT_BYTES = 8 * MEBIBYTE;
const DEFAULT_LIMIT_BYTES = 1024 * MEBIBYTE;
const DEFAULT_RESERVE_BYTES = 4 * 1024;
const DEFAULT_LINES_IN_MEMORY = 8_192;
const MAX_INTENT_BYTES = 64 * 1024;
/** The limit must be several segments, since only whole ones are released. */
const MIN_SEGMENTS = 4;

/**
 * Opens the journal in a directory, cutting a torn last line and making its outcomes and interrupted calls ready to
 * be read. Throws one sentence when another process has it or the directory cannot be used.
 */
export async function openJournal<
  Intent extends Started,
  Outcome extends Recorded,
>(options: JournalOptions<Intent, Outcome>): Promise<Journal<Intent, Outcome>> {
  let release = () => {};
  try {
    await fs.mkdir(options.dir, { recursive: true });
    release = lockJournal(options.dir).release;
    return await openLocked(options, release);
  } catch (error) {
    release();
    // System errors (no permission, a file in the way, disk full) do not say what to do.
    if (!(error instanceof Error && "syscall" in error)) {
      throw error;
    }
    throw new Error(
      `The journal ${options.dir} cannot be used (${error.message}): fix that, or set HEARTH_JOURNAL_DIR to another directory.`,
      { cause: error },
    );
  }
}

/** Opens the journal in a directory that is locked for this process. */
async function openLocked<Intent extends Started, Outcome extends Recorded>(
  options: JournalOptions<Intent, Outcome>,
  release: () => void,
): Promise<Journal<Intent, Outcome>> {
  const { dir, log, now } = options;
  const sizes = sizesOf(options);
  const instance = await instanceOf(dir);
  const acknowledged = new AcknowledgedMark(dir);
  const recovered = await recoverSegments(dir, acknowledged.mark, log);
  if (recovered.mark !== null && recovered.mark !== acknowledged.mark) {
    acknowledged.set(recovered.mark);
  }
  const segments = await openSegments(
    {
      ...segmentsOptions(options, sizes),
      lastNumber: acknowledged.mark?.segment ?? 0,
      dirtied: () => journal.touch(),
    },
    recovered,
  );
  const active = segments.active();
  const tail = new JournalTail<Intent, Outcome>(
    options.linesInMemory ?? DEFAULT_LINES_IN_MEMORY,
  );
  const end = { segment: active.number, offset: active.end };
  const reader = new JournalReader<Intent, Outcome>({
    segments,
    tail,
    recovered: end,
    start: acknowledged.mark,
    log,
  });
  const writer = new JournalWriter<Intent, Outcome>({
    instance,
    segments,
    tail,
    freeText: options.freeText ?? [],
    intentBytes: sizes.intentBytes,
    reserveBytes: sizes.reserveBytes,
    now,
    log,
  });
  const journal = new SegmentedJournal<Intent, Outcome>({
    instance,
    segments,
    reader,
    writer,
    recovered: end,
    recoveredIntents: recovered.intents,
    acknowledged,
    limitBytes: sizes.limitBytes,
    options,
    release,
  });
  return journal;
}

function segmentsOptions(
  { dir, keepMs, now, log }: JournalOptions<never, never>,
  { segmentBytes, limitBytes, reserveBytes }: Sizes,
): Omit<SegmentsOptions, "lastNumber" | "dirtied"> {
  return {
    directory: dir,
    segmentBytes,
    limitBytes,
    reserveBytes,
    keepMs: keepMs ?? 0,
    now,
    allocationFailed: (error) =>
      log.error(
        { error: textOf(error) },
        "No room for another journal segment: free space on its disk.",
      ),
    deletionFailed: ({ number }, error) =>
      log.error(
        { error: textOf(error), segment: number },
        "A journal segment that is in the ledger could not be deleted.",
      ),
  };
}

interface Sizes {
  readonly limitBytes: number;
  readonly segmentBytes: number;
  readonly reserveBytes: number;
  readonly intentBytes: number;
}

function sizesOf(options: JournalOptions<never, never>): Sizes {
  const limitBytes = options.limitBytes ?? DEFAULT_LIMIT_BYTES;
  const segmentBytes = Math.min(
    options.segmentBytes ?? DEFAULT_SEGMENT_BYTES,
    Math.floor(limitBytes / MIN_SEGMENTS),
  );
  return {
    limitBytes,
    segmentBytes,
    reserveBytes: options.reserveBytes ?? DEFAULT_RESERVE_BYTES,
    intentBytes: Math.min(MAX_INTENT_BYTES, Math.floor(segmentBytes / 4)),
  };
}
