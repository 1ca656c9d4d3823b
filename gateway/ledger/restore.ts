import type { Logger } from "pino";
import {
  completeMark,
  isBehind,
  type MarkStep,
} from "../database/journal-marks.ts";
import type { Recorded } from "../database/ledger.ts";
import { archivedMonths } from "../database/retention.ts";
import type { Pool } from "../database/pool.ts";
import type {
  Journal,
  JournalMark,
  JournalRow,
} from "../journal/journal-types.ts";
import type { Intent, Outcome } from "./records.ts";

type Entries = readonly JournalRow<Intent, Outcome>[];

interface RestoreOptions {
  readonly pool: Pool;
  readonly journal: Journal<Intent, Outcome>;
  /** The mark of the database; null: it has none. */
  readonly since: JournalMark | null;
  readonly record: (
    entries: Entries,
    mark: MarkStep | null,
  ) => Promise<Recorded>;
  readonly log: Logger;
}

/**
 * Writes rows again that the database has lost: a standby without the last seconds was promoted, or a backup was restored.
 * Answers how many were missing. Interrupted, it continues where it was.
 */
export async function restoreLedger(options: RestoreOptions): Promise<number> {
  const { pool, journal, since, record, log } = options;
  const end = journal.acknowledged();
  if (end === null) {
    return 0;
  }
  const isComplete = since === null || journal.reachesBackTo(since);
  const archived =
    since === null ? await archivedMonths(pool) : new Set<string>();
  let rows = 0;
  for await (const { rows: entries, mark } of journal.replay(since)) {
    // The last mark comes with the note that the ledger is complete.
    const step = isBehind(mark, end)
      ? { instance: journal.instance, to: mark, reached: null }
      : null;
    const unarchived = entries.filter(
      ({ intent }) => !archived.has(monthOf(intent.startedAt)),
    );
    rows += (await record(unarchived, step)).inserted.size;
  }
  await completeMark(pool, journal.instance, end);
  log.warn(
    { rows },
    "the database lacked rows that the ledger had: they were written again from the journal",
  );
  if (!isComplete) {
    log.error(
      {},
      "the database lacks rows that are no longer in the journal: their calls are missing from the ledger (general_settings.journal_keep)",
    );
  }
  return rows;
}

function monthOf(at: number): string {
  return new Date(at).toISOString().slice(0, "2026-01".length);
}
