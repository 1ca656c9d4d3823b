import type { Logger } from "pino";
import {
  completeMark,
  isBehind,
  type MarkStep,
} from "../database/journal-marks.ts";
import type { Recorded } from "../database/ledger.ts";
import { archivedMonths } from "../database/retention.ts";
import { query, type Pool } from "../database/pool.ts";
import type {
  Journal,
  JournalMark,
  JournalRow,
} from "../journal/journal-types.ts";
import type { Intent, Outcome } from "./records.ts";

type Entries = readonly JournalRow<Intent, Outcome>[];

/** Of more, the log has the number. */
const NAMED_KEYS = 20;

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
  const keys = new Set<string>();
  for await (const { rows: entries, mark } of journal.replay(since)) {
    // The last mark comes with the note that the ledger is complete.
    const step = isBehind(mark, end)
      ? { instance: journal.instance, to: mark, reached: null }
      : null;
    const unarchived = entries.filter(
      ({ intent }) => !archived.has(monthOf(intent.startedAt)),
    );
    const { inserted } = await record(unarchived, step);
    rows += inserted.size;
    for (const { intent } of unarchived) {
      if (intent.apiKey !== null && inserted.has(intent.id)) {
        keys.add(intent.apiKey);
      }
    }
  }
  await completeMark(pool, journal.instance, end);
  log.warn(
    { rows },
    "the database lacked rows that the ledger had: they were written again from the journal",
  );
  const lost = await unknownKeys(pool, [...keys]);
  if (lost.length > 0) {
    log.error(
      { count: lost.length, keys: lost.slice(0, NAMED_KEYS) },
      "keys with calls since are not in the database: clients that use them get 401; create their keys again, also those without calls, and repeat all other changes since",
    );
  }
  if (!isComplete) {
    log.error(
      {},
      "the database lacks rows that are no longer in the journal: their calls are missing from the ledger (general_settings.journal_keep)",
    );
  }
  return rows;
}

/** Hashes of keys that were created or rotated in what the database has lost. */
async function unknownKeys(
  pool: Pool,
  hashes: readonly string[],
): Promise<readonly string[]> {
  const rows = await query<{ token: string }>(
    pool,
    `SELECT token FROM unnest($1::text[]) AS called (token)
     WHERE NOT EXISTS (SELECT FROM keys k WHERE k.token = called.token)
       AND NOT EXISTS (SELECT FROM deleted_keys d WHERE d.token = called.token)`,
    [hashes],
  );
  return rows.map(({ token }) => token);
}

function monthOf(at: number): string {
  return new Date(at).toISOString().slice(0, "2026-01".length);
}
