import { recordOf } from "../../core/json.ts";
import type { Database } from "./database.ts";
import { NOTE_TYPES } from "./livesync.ts";
import type { VaultState } from "./notes-state.ts";

export interface DeletionLimits {
  /** Minimum number of deletions for an alarm. */
  readonly least: number;
  /** Minimum percentage of the vault's notes for an alarm. */
  readonly percent: number;
  /** Period of the count, in milliseconds. */
  readonly within: number;
}

export interface Deletions {
  /** State for the next count. */
  readonly change: Pick<VaultState, "deletionsSince" | "deletions">;
  /** Set when the deletions exceed the limits. */
  readonly mass:
    | {
        readonly deleted: number;
        readonly made: number;
        /** Remaining notes. */
        readonly left: number;
      }
    | undefined;
}

const PAGE_ROWS = 1000;
const notes = { type: { $in: NOTE_TYPES } };
/** `$ne` and `$not` match only documents that have the field. */
const living = {
  ...notes,
  $or: [{ deleted: { $exists: false } }, { deleted: { $ne: true } }],
};

/**
 * Counts deletions in the changes feed since the last count. The plugin deletes by writing `deleted: true` into a
 * document (readable with encryption, too), so `doc_del_count` does not count them; a rename is a deletion and a new note, so
 * new notes are subtracted.
 */
export async function countDeletions(
  database: Database,
  known: VaultState,
  limits: DeletionLimits,
  now: number,
): Promise<Deletions> {
  if (known.deletionsSince === null) {
    const { last_seq } = await database.changes({ since: "now", limit: 0 });
    return {
      change: { deletionsSince: last_seq, deletions: [] },
      mass: undefined,
    };
  }
  const { deleted, made, since } = await countSince(
    database,
    known.deletionsSince,
  );
  const recent = known.deletions.filter(({ at }) => now - at < limits.within);
  const deletions =
    deleted + made === 0 ? recent : [...recent, { at: now, deleted, made }];
  const change = { deletionsSince: since, deletions };
  const sum = (part: "deleted" | "made") =>
    deletions.reduce((total, each) => total + each[part], 0);
  const net = sum("deleted") - sum("made");
  if (net < limits.least) {
    return { change, mass: undefined };
  }
  const left = await countNotes(database);
  return {
    change,
    mass:
      net * 100 >= (left + net) * limits.percent
        ? { deleted: sum("deleted"), made: sum("made"), left }
        : undefined,
  };
}

async function countSince(
  database: Database,
  from: string,
): Promise<{
  readonly deleted: number;
  readonly made: number;
  readonly since: string;
}> {
  let since = from;
  let deleted = 0;
  let made = 0;
  for (;;) {
    const { results, last_seq } = await database.changes({
      since,
      limit: PAGE_ROWS,
      selector: notes,
      fields: ["_id", "deleted"],
    });
    for (const { doc, changes } of results) {
      if (recordOf(doc)["deleted"] === true) {
        deleted += 1;
      } else if (changes.some(({ rev }) => rev.startsWith("1-"))) {
        made += 1;
      }
    }
    since = last_seq;
    if (results.length < PAGE_ROWS) {
      return { deleted, made, since };
    }
  }
}

async function countNotes(database: Database): Promise<number> {
  let since = "0";
  let count = 0;
  for (;;) {
    const { results, last_seq } = await database.changes({
      since,
      limit: PAGE_ROWS,
      selector: living,
    });
    count += results.length;
    since = last_seq;
    if (results.length < PAGE_ROWS) {
      return count;
    }
  }
}
