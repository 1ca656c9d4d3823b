/** The minimum of a record: the call it belongs to. */
export interface Recorded {
  readonly id: string;
}
/** An intent also has the start of the call, in ms since the epoch. */
export type Started = Recorded & { readonly startedAt: number };

/** A call for the ledger. Without an outcome, the process died during the call: it is billed as interrupted. */
export type JournalRow<Intent, Outcome> =
  | { readonly intent: Intent; readonly outcome: Outcome }
  | {
      readonly intent: Intent;
      readonly outcome: null;
      /** Time of the last line before the process died, in ms since the epoch: the same at every replay. */
      readonly recoveredAt: number;
    };

/** A place in the journal's files, at the start of a line: every row that a line before it completed was delivered. */
export interface JournalMark {
  readonly segment: number;
  /** In bytes. */
  readonly offset: number;
  /** The oldest segment with an intent whose row comes after the mark. */
  readonly from: number;
}

export interface JournalBatch<Intent, Outcome> {
  readonly rows: readonly JournalRow<Intent, Outcome>[];
  /** For `commit`: all rows up to the end of this batch. */
  readonly position: number;
  /** The end of this batch, for the ledger to remember. */
  readonly mark: JournalMark;
}

/** Rows that were committed before, and the mark of their end. */
export type ReplayedBatch<Intent, Outcome> = Pick<
  JournalBatch<Intent, Outcome>,
  "rows" | "mark"
>;

export interface JournalState {
  /** Rows in the journal that are not known to be in the ledger. */
  readonly pendingRecords: number;
  /** Calls in flight. */
  readonly openIntents: number;
  /** Bytes taken by lines, and by segments whose lines are not all in the ledger. */
  readonly bytes: number;
  readonly limitBytes: number;
  /** Bytes of segments that are in the ledger and kept for `replay`; they give way to new lines. */
  readonly keptBytes: number;
  /** An alarm: over 80 % of the limit taken, also by room kept for outcomes, or no room on the disk for another segment. */
  readonly nearLimit: boolean;
  /** New intents are rejected. */
  readonly full: boolean;
  /** Why the journal cannot be trusted until a restart (a failed flush); null when there is none. */
  readonly problem: string | null;
}

/** What the journal needs of a logger; pino has it. */
export interface JournalLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface JournalOptions<
  Intent extends Started,
  Outcome extends Recorded,
> {
  /** Created if missing. One process at a time. */
  readonly dir: string;
  /** Default 8 MiB, at most a quarter of the limit. */
  readonly segmentBytes?: number;
  /** Default 1 GiB. */
  readonly limitBytes?: number;
  /** Room kept for the outcome of each open intent. Default 4 KiB. */
  readonly reserveBytes?: number;
  /** `always`: what `intent` and `outcome` return resolves once the line is flushed to the disk. */
  readonly sync: "interval" | "always";
  /** Default 50 ms: a power cut (not a killed process) loses at most what was written since. */
  readonly syncEveryMs?: number;
  /** Lines not read yet that are also kept in memory, so that a reader that keeps up reads no files. Default 8,192. */
  readonly linesInMemory?: number;
  /**
   * How long segments stay that are in the ledger, in ms, unless the limit or the disk needs their room. Default 0: they are
   * deleted at once.
   */
  readonly keepMs?: number;
  /** Fields to shorten, in this order, in a record longer than its room; all others are kept as they are. */
  readonly freeText?: readonly (
    (keyof Intent & string) | (keyof Outcome & string)
  )[];
  /** Ms since the epoch. */
  readonly now: () => number;
  readonly log: JournalLog;
}

/**
 * The append-only record of calls between the gateway and the ledger.
 *
 * `intent` and `outcome` have written their line when they return, so that a killed process loses nothing. With
 * `sync: "always"` they return a promise that resolves once the line is flushed; otherwise undefined, and waiting for
 * it costs nothing: `const flushed = journal.intent(record); if (flushed) await flushed;`.
 */
export interface Journal<Intent extends Started, Outcome extends Recorded> {
  /** Stable id of this journal. */
  readonly instance: string;
  /**
   * Records a call before it leaves. Throws (or rejects with) `JournalFull` when its outcome might find no room or the
   * disk fails: the call must not be sent. After a rejection, not after a throw, the intent is in the journal and
   * still needs its outcome.
   */
  intent(record: Intent): Promise<void> | undefined;
  /**
   * Replaces the open intent of a call, before more is sent for it than the intent says. Throws or rejects as `intent` does; the call
   * then goes on with the intent that it has.
   */
  amend(record: Intent): Promise<void> | undefined;
  /**
   * Records how the call ended, once for each intent. Never throws for lack of room: where the disk fails, the line is
   * kept in memory and tried again (and a promise, with `sync: "always"`, rejects with `JournalFull`).
   */
  outcome(record: Outcome): Promise<void> | undefined;
  /**
   * Records a call that has ended before anything was sent for it, in one piece. Throws (or rejects with) `JournalFull`; after a throw
   * nothing is recorded.
   */
  record(intent: Intent, outcome: Outcome): Promise<void> | undefined;
  /**
   * The next rows in the order of their outcomes, at most `maxRows`; none when all were read. Each row comes once in
   * a process: keep them until they are committed. After a restart all rows after the last known commit
   * come again. One call at a time.
   */
  read(maxRows: number): Promise<JournalBatch<Intent, Outcome>>;
  /**
   * All rows up to the position are in the ledger: segments with nothing else in them are kept for `keepMs` and then
   * deleted, oldest first.
   */
  commit(position: number): void;
  /** The end of what was committed, also by previous processes; null: nothing known. */
  acknowledged(): JournalMark | null;
  /**
   * Committed rows again, for a ledger that lost them: from `since` (null: the oldest that is kept) to `acknowledged()`.
   * Independent of `read` and `commit`.
   */
  replay(
    since: JournalMark | null,
  ): AsyncIterable<ReplayedBatch<Intent, Outcome>>;
  /** Whether the rows from the mark on are still there. */
  reachesBackTo(since: JournalMark): boolean;
  state(): JournalState;
  /** Flushes and unlocks the directory. Open calls are delivered as interrupted at the next start. */
  close(): Promise<void>;
}
