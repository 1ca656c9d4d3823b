import { Failure } from "../../core/failure.ts";
import type { CouchDocument, Database } from "./database.ts";
import { copyVersions, shownWithText } from "./keep-both.ts";
import { isEncryptedPath, NOTE_TYPES } from "./livesync.ts";
import type { NotesState } from "./notes-state.ts";

/** One revision of a conflicted note, as far as it can be read without the vault's passphrase. */
export interface ConflictVersion {
  readonly rev: string;
  /** The version that devices display. */
  readonly wins: boolean;
  /** When the note was written, milliseconds since 1970; null when it is encrypted. */
  readonly mtime: number | null;
  readonly bytes: number | null;
  readonly deleted: boolean;
}

export interface Conflict {
  readonly document: string;
  /** Null when it is encrypted. */
  readonly path: string | null;
  /** The device, for a document that belongs to one device (its plugins and settings). */
  readonly device: string | null;
  /** When the supervisor first found the conflict, milliseconds since 1970. */
  readonly firstSeen: number;
  readonly versions: readonly ConflictVersion[];
}

export interface ConflictReport {
  readonly vault: string;
  readonly conflicts: readonly Conflict[];
  /** There are more conflicts than the report contains. */
  readonly more: boolean;
}

/** The open conflicts of a vault, at most `limit`. Records when each was first found. */
export async function findConflicts(
  database: Database,
  state: NotesState,
  now: number,
  limit: number,
  signal?: AbortSignal,
): Promise<ConflictReport> {
  const documents = await conflicted(database, limit + 1, signal);
  const known = state.vault(database.name).conflicts;
  const reported = documents.slice(0, limit);
  const leaves = await leavesOf(database, reported, signal);
  const conflicts = reported.map((document): Conflict => {
    const { path } = document;
    const readable =
      typeof path === "string" && !isEncryptedPath(path) ? path : null;
    return {
      document: document._id,
      path: readable,
      device: /^ix:([^/]+)\//.exec(readable ?? "")?.[1] ?? null,
      firstSeen: known[document._id] ?? now,
      versions: (leaves.get(document._id) ?? [])
        .map((leaf) => versionOf(leaf, leaf._rev === document._rev))
        .toSorted((a, b) => Number(b.wins) - Number(a.wins)),
    };
  });
  state.change(database.name, {
    conflicts: Object.fromEntries(
      conflicts.map(({ document, firstSeen }) => [document, firstSeen]),
    ),
  });
  return {
    vault: database.name,
    conflicts,
    more: documents.length > limit,
  };
}

/** The number of conflicted documents, at most `limit`. */
export async function countConflicts(
  database: Database,
  limit: number,
  signal?: AbortSignal,
): Promise<number> {
  return (await conflicted(database, limit, signal)).length;
}

async function conflicted(
  database: Database,
  limit: number,
  signal?: AbortSignal,
): Promise<readonly CouchDocument[]> {
  return database.find(
    {
      selector: { _conflicts: { $exists: true } },
      conflicts: true,
      fields: ["_id", "_rev", "_conflicts", "path"],
      limit,
    },
    signal === undefined ? {} : { signal },
  );
}

/** The open versions of conflicted documents, read in one request. */
async function leavesOf(
  database: Database,
  documents: readonly CouchDocument[],
  signal: AbortSignal | undefined,
): Promise<ReadonlyMap<string, readonly CouchDocument[]>> {
  if (documents.length === 0) {
    return new Map();
  }
  const leaves = await database.revisions(
    documents.flatMap(({ _id: id, _rev, _conflicts = [] }) =>
      [_rev, ..._conflicts].map((rev) => ({ id, rev })),
    ),
    signal === undefined ? {} : { signal },
  );
  return Map.groupBy(leaves, ({ _id }) => _id);
}

function versionOf(leaf: CouchDocument, wins: boolean): ConflictVersion {
  const { mtime, size, path } = leaf;
  const encrypted = typeof path === "string" && isEncryptedPath(path);
  const readable = (value: unknown) =>
    !encrypted && typeof value === "number" ? value : null;
  return {
    rev: leaf._rev,
    wins,
    mtime: readable(mtime),
    bytes: readable(size),
    deleted: leaf["deleted"] === true,
  };
}

/** The version to keep: the one written last, a named one, or all, each as a note of its own. */
export type Resolution = "newer" | "both" | { readonly rev: string };

export interface Resolved {
  readonly document: string;
  readonly kept: string;
  readonly removed: readonly string[];
  /** Paths of the notes that now contain other versions. */
  readonly copies: readonly string[];
}

/**
 * Resolves one conflict: every other version becomes a deleted leaf. `document` is an id or a readable path. Throws a Failure
 * when the conflict or the version does not exist, or when "newer" or "both" is impossible because the note is encrypted.
 */
export async function resolveConflict(
  database: Database,
  document: string,
  resolution: Resolution,
): Promise<Resolved> {
  const id = await idOf(database, document);
  const leaves = (await database.leaves(id)).filter(
    (leaf) => leaf._deleted !== true,
  );
  if (leaves.length < 2) {
    throw new Failure(
      `"${document}" of vault ${database.name} has no open conflict. Run \`hearth notes conflicts ${database.name}\` to list the open ones.`,
    );
  }
  const kept = await keptOf(database, leaves, document, resolution);
  const others = leaves.filter((leaf) => leaf._rev !== kept);
  const copies =
    resolution === "both" ? await copyVersions(database, others) : [];
  const removed = others.map((leaf) => leaf._rev);
  await database.write(others.map(deletionOf));
  return { document: id, kept, removed, copies };
}

/** Devices fetch documents by their type, so a deletion keeps the members of the version, as the plugin's own do, but not its content. */
function deletionOf(leaf: CouchDocument): CouchDocument {
  const emptied = Object.entries({ children: [], eden: {}, data: "" }).filter(
    ([name]) => name in leaf,
  );
  return { ...leaf, ...Object.fromEntries(emptied), _deleted: true };
}

async function keptOf(
  database: Database,
  leaves: readonly CouchDocument[],
  document: string,
  resolution: Resolution,
): Promise<string> {
  if (resolution === "newer") {
    return newest(leaves, document);
  }
  if (resolution === "both") {
    const shown = await database.document(leaves[0]?._id ?? "");
    return shownWithText(leaves, shown?._rev, document);
  }
  return named(leaves, resolution.rev, document);
}

async function idOf(database: Database, document: string): Promise<string> {
  const named =
    (await database.document(document)) ??
    (await database.document(document.toLowerCase()));
  if (named !== undefined) {
    return named._id;
  }
  const [found] = await database.find({
    selector: { type: { $in: NOTE_TYPES }, path: document },
    fields: ["_id", "_rev"],
    limit: 1,
  });
  if (found !== undefined) {
    return found._id;
  }
  throw new Failure(
    `vault ${database.name} has no document "${document}". Run \`hearth notes conflicts ${database.name}\` to list the conflicts.`,
  );
}

function newest(leaves: readonly CouchDocument[], document: string): string {
  const times = leaves.map((leaf) => versionOf(leaf, false).mtime);
  if (times.some((time) => time === null)) {
    throw new Failure(
      `the times of "${document}" are encrypted, so the newer version is known only to devices: choose one with --rev ${leaves[0]?._rev ?? ""}, or merge the note on a device.`,
    );
  }
  const latest = Math.max(...times.map(Number));
  const candidates = leaves.filter((_leaf, index) => times[index] === latest);
  if (candidates.length > 1) {
    throw new Failure(
      `${candidates.length} versions of "${document}" were written at the same time: choose one with --rev ${candidates[0]?._rev ?? ""}.`,
    );
  }
  return candidates[0]?._rev ?? "";
}

function named(
  leaves: readonly CouchDocument[],
  rev: string,
  document: string,
): string {
  const matching = leaves.filter((leaf) => leaf._rev.startsWith(rev));
  if (matching.length === 1 && matching[0] !== undefined) {
    return matching[0]._rev;
  }
  throw new Failure(
    `"${document}" has ${matching.length === 0 ? "no" : "more than one"} version ${rev}; its versions are ${leaves.map((leaf) => leaf._rev).join(", ")}.`,
  );
}
