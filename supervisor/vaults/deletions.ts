import { recordOf } from "../../core/json.ts";
import type { ChangesPage } from "./couch-answers.ts";
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

const notes = { type: { $in: NOTE_TYPES } };
/** Other programs delete permanently, which can leave no type. So does the plugin, but only unused chunks: ids of `h:`. */
const notesAndDeletions = {
  $or: [
    notes,
    { _deleted: true, _id: { $lt: "h:" } },
    { _deleted: true, _id: { $gte: "h;" } },
  ],
};
/** `$ne` and `$not` match only documents that have the field. */
const living = {
  ...notes,
  _deleted: { $exists: false },
  $or: [{ deleted: { $exists: false } }, { deleted: { $ne: true } }],
};

/**
 * Counts deletions in the changes feed since the last count. The plugin deletes by writing `deleted: true` into a
 * document (readable with encryption, too), which `doc_del_count` does not count; other programs delete it permanently. A rename
 * is a deletion and a note that is new, or deleted no longer, so these are subtracted.
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
  const pages = database.changePages({
    since,
    selector: notesAndDeletions,
    fields: ["_id", "_deleted", "deleted"],
  });
  for await (const { results, last_seq } of pages) {
    const gone = results.filter(({ doc }) => isDeleted(doc));
    const present = results.filter(({ doc }) => !isDeleted(doc));
    const edited = present.filter((row) => !isFirstVersion(row));
    made += present.length - edited.length;
    // Without a deletion there is nothing to subtract from.
    if (gone.length > 0) {
      // The plugin can be set to delete permanently what it marked as deleted some days ago.
      deleted += gone.length - (await countDeletedBefore(database, gone));
      // As the notes of a folder that is moved back.
      made += await countDeletedBefore(database, edited);
    }
    since = last_seq;
  }
  return { deleted, made, since };
}

/** How many of the changed notes were deleted before. Versions that were compacted are unknown. */
async function countDeletedBefore(
  database: Database,
  changed: ChangesPage["results"],
): Promise<number> {
  const current = await database.revisions(
    changed.flatMap(({ id, changes }) =>
      changes.map(({ rev }) => ({ id, rev })),
    ),
  );
  const before = await database.revisions(
    current.flatMap(({ _id: id, _revisions: revisions }) => {
      const parent = revisions?.ids[1];
      return revisions === undefined || parent === undefined
        ? []
        : [{ id, rev: `${revisions.start - 1}-${parent}` }];
    }),
  );
  return before.filter(isDeleted).length;
}

function isFirstVersion({ changes }: ChangesPage["results"][number]): boolean {
  return changes.some(({ rev }) => rev.startsWith("1-"));
}

function isDeleted(document: unknown): boolean {
  const { deleted, _deleted: permanently } = recordOf(document);
  return deleted === true || permanently === true;
}

async function countNotes(database: Database): Promise<number> {
  let count = 0;
  const pages = database.changePages({
    since: "0",
    selector: living,
  });
  for await (const { results } of pages) {
    count += results.length;
  }
  return count;
}
