import { textOf } from "../../core/failure.ts";
import type { AcknowledgedMark } from "./journal-mark.ts";
import type { JournalReader } from "./journal-reader.ts";
import { replayRows } from "./journal-replay.ts";
import { Syncer } from "./journal-sync.ts";
import type {
  Journal,
  JournalBatch,
  JournalMark,
  JournalOptions,
  JournalState,
  Recorded,
  ReplayedBatch,
  Started,
} from "./journal-types.ts";
import { JournalFull, type JournalWriter } from "./journal-writer.ts";
import type { Segment } from "./segment.ts";
import type { Segments } from "./segments.ts";

const DEFAULT_SYNC_EVERY_MS = 50;
/** An open call keeps its segment and all later ones; above this part of the limit its intent is written again. */
const CARRY_ABOVE = 0.25;

interface JournalParts<Intent extends Started, Outcome extends Recorded> {
  readonly instance: string;
  readonly segments: Segments;
  readonly reader: JournalReader<Intent, Outcome>;
  readonly writer: JournalWriter<Intent, Outcome>;
  /** Where the lines of previous processes end. */
  readonly recovered: Pick<JournalMark, "segment" | "offset">;
  /** Intents that previous processes left. */
  readonly recoveredIntents: number;
  readonly acknowledged: AcknowledgedMark;
  readonly limitBytes: number;
  readonly options: JournalOptions<Intent, Outcome>;
  /** Unlocks the directory. */
  readonly release: () => void;
}

/** The open journal: writes and flushes lines, reads them as rows, and deletes segments that are in the ledger. */
export class SegmentedJournal<
  Intent extends Started,
  Outcome extends Recorded,
> implements Journal<Intent, Outcome> {
  readonly instance: string;
  readonly #parts: JournalParts<Intent, Outcome>;
  readonly #segments: Segments;
  readonly #reader: JournalReader<Intent, Outcome>;
  readonly #writer: JournalWriter<Intent, Outcome>;
  readonly #syncer: Syncer;
  readonly #alwaysSync: boolean;
  /** Rows written and not yet read. */
  #unread: number;
  /** The ends of batches that were read and not committed, oldest first. */
  readonly #ends: Omit<JournalBatch<Intent, Outcome>, "rows">[] = [];
  #reading: Promise<unknown> = Promise.resolve();
  #releasing: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(parts: JournalParts<Intent, Outcome>) {
    const { instance, segments, reader, writer, options } = parts;
    this.instance = instance;
    this.#parts = parts;
    this.#segments = segments;
    this.#reader = reader;
    this.#writer = writer;
    this.#alwaysSync = options.sync === "always";
    this.#unread = parts.recoveredIntents;
    this.#syncer = new Syncer(
      options.syncEveryMs ?? DEFAULT_SYNC_EVERY_MS,
      () => this.#flush(),
      (error) => this.#flushFailed(error),
    );
  }

  intent(record: Intent): Promise<void> | undefined {
    this.#requireOpen();
    this.#writer.intent(record);
    return this.#alwaysSync ? this.#flushed() : undefined;
  }

  amend(record: Intent): Promise<void> | undefined {
    this.#requireOpen();
    this.#writer.amend(record);
    return this.#alwaysSync ? this.#flushed() : undefined;
  }

  outcome(record: Outcome): Promise<void> | undefined {
    const written = this.#writer.outcome(record);
    this.#unread++;
    return this.#alwaysSync ? this.#outcomeFlushed(written) : undefined;
  }

  record(intent: Intent, outcome: Outcome): Promise<void> | undefined {
    this.#requireOpen();
    this.#writer.record(intent, outcome);
    this.#unread++;
    return this.#alwaysSync ? this.#flushed() : undefined;
  }

  read(maxRows: number): Promise<JournalBatch<Intent, Outcome>> {
    const batch = this.#reading.then(() => this.#readBatch(maxRows));
    this.#reading = batch.catch(() => undefined);
    return batch;
  }

  commit(position: number): void {
    this.#reader.commit(position);
    let mark: JournalMark | undefined;
    while (this.#ends[0] !== undefined && this.#ends[0].position <= position) {
      mark = this.#ends.shift()?.mark;
    }
    if (mark !== undefined) {
      this.#parts.acknowledged.set(mark);
    }
    this.#releaseCommitted();
  }

  acknowledged(): JournalMark | null {
    return this.#parts.acknowledged.mark;
  }

  replay(
    since: JournalMark | null,
  ): AsyncIterable<ReplayedBatch<Intent, Outcome>> {
    const { recovered, options } = this.#parts;
    return replayRows<Intent, Outcome>({
      segments: [...this.#segments.kept, ...this.#segments.list],
      recovered,
      since,
      until: this.acknowledged(),
      log: options.log,
    });
  }

  reachesBackTo(since: JournalMark): boolean {
    const [oldest] = [...this.#segments.kept, ...this.#segments.list];
    return oldest !== undefined && oldest.number <= since.from;
  }

  state(): JournalState {
    const openIntents = this.#writer.openIntents();
    return {
      pendingRecords:
        this.#unread + this.#reader.delivered() - this.#reader.committed(),
      openIntents,
      bytes: this.#segments.usedBytes(),
      limitBytes: this.#parts.limitBytes,
      keptBytes: this.#segments.keptBytes,
      nearLimit: this.#segments.nearLimit(openIntents),
      full: this.#writer.full(),
      problem: this.#writer.problem(),
    };
  }

  async close(): Promise<void> {
    if (this.#closed) {
      return;
    }
    this.#closed = true;
    await this.#reading;
    await this.#leaveCommitted();
    await this.#releasing;
    await this.#segments.quiet();
    await this.#syncer.stop();
    if (!this.#writer.retry()) {
      this.#parts.options.log.error(
        {},
        "Outcomes that could not be written to the journal are lost: their calls are billed as interrupted.",
      );
    }
    await this.#reader.close();
    this.#segments.close();
    this.#parts.acknowledged.close();
    this.#parts.release();
  }

  /** A line or a file was written. */
  touch(): void {
    this.#syncer.touch();
  }

  #requireOpen(): void {
    if (this.#closed) {
      throw new JournalFull("The journal is closed.");
    }
  }

  async #flush(): Promise<void> {
    const written = this.#writer.retry();
    await this.#segments.sync();
    if (!written) {
      this.#syncer.touch();
    }
  }

  #flushFailed(error: unknown): void {
    const { dir, log } = this.#parts.options;
    const problem = `The journal in ${dir} could not be flushed to its disk (${textOf(error)}): check the disk and restart the gateway.`;
    if (this.#writer.problem() === null) {
      log.error({}, problem);
    }
    // The kernel may report a failed flush once only and then forget what it could not write.
    this.#writer.fail(problem);
  }

  async #flushed(): Promise<void> {
    try {
      await this.#syncer.flushed();
    } catch (error) {
      throw new JournalFull(this.#writer.problem() ?? textOf(error), {
        cause: error,
      });
    }
  }

  async #outcomeFlushed(written: boolean): Promise<void> {
    await this.#flushed();
    if (!written && !this.#writer.retry()) {
      throw new JournalFull(
        "The outcome of a call could not be written to the journal.",
      );
    }
  }

  async #readBatch(maxRows: number): Promise<JournalBatch<Intent, Outcome>> {
    const rows = await this.#reader.read(maxRows);
    this.#unread = this.#reader.atEnd()
      ? 0
      : Math.max(0, this.#unread - rows.length);
    const position = this.#reader.delivered();
    const mark = this.#reader.mark();
    if (rows.length > 0) {
      this.#ends.push({ position, mark });
    }
    this.#segments.sweepKept();
    return { rows, position, mark };
  }

  #releaseCommitted(): void {
    const { limitBytes } = this.#parts;
    const released: Segment[] = [];
    let oldest = this.#segments.list[0] as Segment;
    while (oldest !== this.#segments.active() && this.#reader.done(oldest)) {
      released.push(this.#segments.keepOldest());
      oldest = this.#segments.list[0] as Segment;
    }
    if (released.length > 0) {
      this.#releasing = this.#releasing.then(() => this.#release(released));
    } else if (this.#segments.usedBytes() > limitBytes * CARRY_ABOVE) {
      this.#writer.carry(this.#reader.holding(oldest), oldest.number);
    }
  }

  async #release(released: readonly Segment[]): Promise<void> {
    try {
      // Intents carried out of them must be on the disk before they go.
      await this.#syncer.flushed();
      this.#segments.releaseKept(released);
    } catch (error) {
      this.#parts.options.log.error(
        { error: textOf(error), segments: released.map((s) => s.number) },
        "Journal segments that are in the ledger stay: the journal could not be flushed.",
      );
    }
  }

  /** Leaves the active segment behind when all of it is in the ledger, so that the next start has nothing to replay. */
  async #leaveCommitted(): Promise<void> {
    const idle = this.#writer.openIntents() === 0 && this.#reader.atEnd();
    if (!idle || this.#reader.committed() < this.#reader.delivered()) {
      return;
    }
    if (!this.#segments.leaveActive()) {
      return;
    }
    await this.#reader.read(1);
    this.#releaseCommitted();
  }
}
