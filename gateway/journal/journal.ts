import fs from "node:fs/promises";
import { instanceOf } from "./journal-instance.ts";
import { lockJournal } from "./journal-lock.ts";
import { createJournalReader } from "./journal-reader.ts";
import { recoverSegments } from "./journal-recovery.ts";
import { createJournalTail } from "./journal-tail.ts";
import { createSyncer } from "./journal-sync.ts";
import { JournalFull, createJournalWriter } from "./journal-writer.ts";
import type { Segment } from "./segment.ts";
import type {
  Journal,
  JournalBatch,
  JournalOptions,
  Recorded,
  Started,
} from "./journal-types.ts";
import { openSegments } from "./segments.ts";

export { JournalFull } from "./journal-writer.ts";
export type * from "./journal-types.ts";

const MEBIBYTE = 1024 * 1024;
const DEFAULT_SEGMENT_BYTES = 8 * MEBIBYTE;
const DEFAULT_LIMIT_BYTES = 1024 * MEBIBYTE;
const DEFAULT_RESERVE_BYTES = 4 * 1024;
const DEFAULT_SYNC_EVERY_MS = 50;
const DEFAULT_LINES_IN_MEMORY = 8_192;
const MAX_INTENT_BYTES = 64 * 1024;
/** The limit must hold several segments: only whole ones are given back. */
const LEAST_SEGMENTS = 4;
/** An open call keeps its segment and all later ones; from this part of the limit on its intent is written again. */
const CARRY_ABOVE = 0.25;

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
    // What the system says (no permission, a file in the way, disk full) lacks what to do.
    if (!(error instanceof Error && "syscall" in error)) {
      throw error;
    }
    throw new Error(
      `The journal ${options.dir} cannot be used (${error.message}): mend that, or name another directory in HEARTH_JOURNAL_DIR.`,
      { cause: error },
    );
  }
}

async function openLocked<Intent extends Started, Outcome extends Recorded>(
  options: JournalOptions<Intent, Outcome>,
  release: () => void,
): Promise<Journal<Intent, Outcome>> {
  const { dir, log, now, sync } = options;
  const limitBytes = options.limitBytes ?? DEFAULT_LIMIT_BYTES;
  const segmentBytes = Math.min(
    options.segmentBytes ?? DEFAULT_SEGMENT_BYTES,
    Math.floor(limitBytes / LEAST_SEGMENTS),
  );
  const reserveBytes = options.reserveBytes ?? DEFAULT_RESERVE_BYTES;
  const intentBytes = Math.min(MAX_INTENT_BYTES, Math.floor(segmentBytes / 4));

  const instance = await instanceOf(dir);
  const recovered = await recoverSegments(dir, log);
  const segments = await openSegments(
    {
      directory: dir,
      segmentBytes,
      limitBytes,
      reserveBytes,
      now,
      dirtied: () => syncer.touch(),
      allocationFailed: (error) =>
        log.error(
          { error: messageOf(error) },
          "The journal's disk has no room for another segment: free some of it.",
        ),
    },
    recovered.segments,
    recovered.active,
  );
  const start = segments.active();
  const tail = createJournalTail<Intent, Outcome>(
    options.linesInMemory ?? DEFAULT_LINES_IN_MEMORY,
  );
  const reader = createJournalReader<Intent, Outcome>({
    segments,
    tail,
    recovered: { segment: start.number, offset: start.end },
    log,
  });
  const writer = createJournalWriter<Intent, Outcome>({
    instance,
    segments,
    tail,
    freeText: options.freeText ?? [],
    intentBytes,
    reserveBytes,
    now,
    log,
  });
  const syncer = createSyncer(
    options.syncEveryMs ?? DEFAULT_SYNC_EVERY_MS,
    async () => {
      const written = writer.retry();
      await segments.sync();
      if (!written) {
        syncer.touch();
      }
    },
    (error) => {
      const problem = `The journal in ${dir} could not be flushed to its disk (${messageOf(error)}): check the disk and restart the gateway.`;
      if (writer.problem() === null) {
        log.error({}, problem);
      }
      // The kernel may report a failed flush once only and then forget what it could not write.
      writer.fail(problem);
    },
  );
  /** Rows written and not yet read. */
  let unread = recovered.intents;
  let reading: Promise<unknown> = Promise.resolve();
  let deleting: Promise<void> = Promise.resolve();
  let closed = false;

  async function flushed(): Promise<void> {
    try {
      await syncer.flushed();
    } catch (error) {
      throw new JournalFull(writer.problem() ?? messageOf(error), {
        cause: error,
      });
    }
  }

  async function outcomeFlushed(written: boolean): Promise<void> {
    await flushed();
    if (!written && !writer.retry()) {
      throw new JournalFull(
        "The journal's disk refuses the outcome of a call.",
      );
    }
  }

  async function readBatch(
    maxRows: number,
  ): Promise<JournalBatch<Intent, Outcome>> {
    const rows = await reader.read(maxRows);
    unread = reader.atEnd() ? 0 : Math.max(0, unread - rows.length);
    return { rows, position: reader.delivered() };
  }

  async function deleteSegments(dropped: readonly Segment[]): Promise<void> {
    try {
      // Intents carried out of them must be on the disk before they go.
      await syncer.flushed();
      for (const segment of dropped) {
        await segments.unlink(segment);
      }
    } catch (error) {
      log.error(
        { error: messageOf(error), segments: dropped.map((s) => s.number) },
        "Segments of the journal, all of them in the ledger, could not be deleted.",
      );
    }
  }

  function deleteCommitted(): void {
    const dropped: Segment[] = [];
    let oldest = segments.list[0] as Segment;
    while (oldest !== segments.active() && reader.done(oldest)) {
      dropped.push(segments.dropOldest());
      oldest = segments.list[0] as Segment;
    }
    if (dropped.length > 0) {
      deleting = deleting.then(() => deleteSegments(dropped));
    } else if (segments.usedBytes() > limitBytes * CARRY_ABOVE) {
      writer.carry(reader.holding(oldest), oldest.number);
    }
  }

  /** Leaves the active segment behind when all of it is in the ledger, so that the next start has nothing to replay. */
  async function leaveCommitted(): Promise<void> {
    const idle = writer.openIntents() === 0 && reader.atEnd();
    if (!idle || reader.committed() < reader.delivered()) {
      return;
    }
    if (!segments.leaveActive()) {
      return;
    }
    await reader.read(1);
    deleteCommitted();
  }

  return {
    instance,
    intent(record) {
      if (closed) {
        throw new JournalFull("The journal is closed.");
      }
      writer.intent(record);
      return sync === "always" ? flushed() : undefined;
    },
    outcome(record) {
      const written = writer.outcome(record);
      unread++;
      return sync === "always" ? outcomeFlushed(written) : undefined;
    },
    read(maxRows) {
      const batch = reading.then(() => readBatch(maxRows));
      reading = batch.catch(() => undefined);
      return batch;
    },
    commit(position) {
      reader.commit(position);
      deleteCommitted();
    },
    state() {
      return {
        pendingRecords: unread + reader.delivered() - reader.committed(),
        openIntents: writer.openIntents(),
        bytes: segments.usedBytes(),
        limitBytes,
        nearLimit: segments.nearLimit(writer.openIntents()),
        full: writer.full(),
        problem: writer.problem(),
      };
    },
    async close() {
      if (closed) {
        return;
      }
      closed = true;
      await reading;
      await leaveCommitted();
      await deleting;
      await segments.quiet();
      await syncer.stop();
      if (!writer.retry()) {
        log.error(
          {},
          "Outcomes that the journal's disk refused are lost: their calls come back as interrupted.",
        );
      }
      await reader.close();
      segments.close();
      release();
    },
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
