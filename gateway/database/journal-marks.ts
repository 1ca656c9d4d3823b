import { DAY_MS } from "../../core/duration.ts";
import { compareMarks } from "../journal/journal-mark.ts";
import type { JournalMark } from "../journal/journal-types.ts";
import { query, repeatedQuery, type Client, type Pool } from "./pool.ts";

/** How far the journal of an instance is in the ledger. */
export interface MarkStep {
  readonly instance: string;
  /** The end of the rows that this transaction adds. */
  readonly to: JournalMark;
  /** What earlier transactions reached as far as the instance knows; null: nothing. */
  readonly reached: JournalMark | null;
}

/** The database lacks transactions whose commit it has confirmed: it took the place of another one. */
export class LedgerBehind extends Error {
  /** null: the database has no mark of this instance. */
  readonly mark: JournalMark | null;

  constructor(mark: JournalMark | null) {
    super("The database lacks rows that the ledger had.");
    this.mark = mark;
  }
}

/** Now, by the clock of the database, in ms since the epoch. */
export const CLOCK_MS =
  "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/** `restoredAt`: an expression; 0 keeps the moment of the last restoration. */
function writingMark(restoredAt: string): string {
  return `
    INSERT INTO journal_marks AS m (instance, segment, line_offset, from_segment, restored_at) VALUES ($1, $2, $3, $4, ${restoredAt})
    ON CONFLICT (instance) DO UPDATE
      SET segment = excluded.segment, line_offset = excluded.line_offset, from_segment = excluded.from_segment,
        restored_at = greatest(m.restored_at, excluded.restored_at), updated_at = now()`;
}

const COLUMNS =
  'segment, line_offset AS "offset", from_segment AS "from" FROM journal_marks WHERE instance = $1';

/** What the ledger has of an instance's journal; null: nothing known. */
export async function readMark(
  pool: Pool,
  instance: string,
): Promise<JournalMark | null> {
  const [mark] = await query<JournalMark>(pool, `SELECT ${COLUMNS}`, [
    instance,
  ]);
  return mark ?? null;
}

/** Whether a ledger with this mark lacks what it had. */
export function isBehind(
  mark: JournalMark | null,
  reached: JournalMark | null,
): boolean {
  return reached !== null && (mark === null || compareMarks(mark, reached) < 0);
}

/** Moves the mark in the transaction of the rows before it; throws {@link LedgerBehind}. */
export async function moveMark(
  client: Client,
  { instance, to, reached }: MarkStep,
): Promise<void> {
  // The statement reads the mark as it was before.
  const [mark = null] = await repeatedQuery<JournalMark>(
    client,
    `WITH moved AS (${writingMark("0")}) SELECT ${COLUMNS}`,
    [instance, ...valuesOf(to)],
  );
  if (isBehind(mark, reached)) {
    throw new LedgerBehind(mark);
  }
}

/** The ledger has all rows up to the mark again, and its totals count as newer than any that was read before. */
export async function completeMark(
  pool: Pool,
  instance: string,
  mark: JournalMark,
): Promise<void> {
  await query(pool, writingMark(CLOCK_MS), [instance, ...valuesOf(mark)]);
}

/** Forgets marks of instances that wrote nothing for so many days. Should one of them return, its journal is read from the beginning. */
export async function dropOldMarks(
  pool: Pool,
  days: number,
  now: number,
): Promise<void> {
  await query(pool, "DELETE FROM journal_marks WHERE updated_at < $1", [
    new Date(now - days * DAY_MS).toISOString(),
  ]);
}

function valuesOf({ segment, offset, from }: JournalMark): readonly number[] {
  return [segment, offset, from];
}
