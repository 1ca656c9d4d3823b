import { isDeepStrictEqual } from "node:util";
import { Failure } from "../../core/failure.ts";
import { CHUNKS_PER_REQUEST, type HistorySource } from "./history-source.ts";
import {
  joinChunks,
  UnreadableNote,
  type NoteCipher,
  type NoteDocument,
} from "./note-cipher.ts";
import { withoutTrailingSlashes } from "../../core/trailing-slashes.ts";

/** A note as of a point in time: readable, and as stored. */
export interface PastNote {
  readonly note: NoteDocument;
  readonly stored: Readonly<Record<string, unknown>>;
  /** When this version was current; milliseconds since 1970. */
  readonly since: number;
  readonly until: number | null;
}

export interface PastVault {
  /** The displayed time; earlier than requested where the history is thinned. */
  readonly at: number;
  /** By document id; deleted notes are left out unless the document still says so. */
  readonly notes: ReadonlyMap<string, PastNote>;
  /** Revisions of notes that are damaged or cannot be decrypted, by document id. */
  readonly unreadable: ReadonlyMap<string, string>;
}

export interface Difference {
  readonly past: PastVault;
  readonly present: PastVault;
  /** Past versions of notes that have changed or were deleted since. */
  readonly changed: readonly PastNote[];
  /** Current versions of notes that did not exist then. */
  readonly added: readonly PastNote[];
  readonly unchanged: number;
}

interface Restored {
  readonly at: number;
  readonly written: readonly string[];
  readonly deleted: readonly string[];
  /** Notes that needed no change. */
  readonly unchanged: number;
  /** Documents that are damaged or cannot be decrypted; they stay as they are. */
  readonly unreadable: readonly string[];
}

const DOCUMENTS_PER_REQUEST = 100;

/** All notes of a vault as of `at`, milliseconds since 1970. Throws an UnreadableNote if none can be decrypted. */
export async function readVaultAt(
  source: HistorySource,
  cipher: NoteCipher,
  at: number,
): Promise<PastVault> {
  const notes = new Map<string, PastNote>();
  const unreadable = new Map<string, string>();
  let why: UnreadableNote | undefined;
  let start: string | null = "";
  let shown = at;
  while (start !== null) {
    const page = await source.notesAt(at, start);
    shown = page.at;
    start = page.next;
    for (const { doc, since, until, damaged } of page.rows) {
      if (damaged === true) {
        unreadable.set(doc._id, doc._rev);
        continue;
      }
      const note = await readNote(cipher, doc);
      if (note instanceof UnreadableNote) {
        why ??= note;
        unreadable.set(doc._id, doc._rev);
      } else if (note !== undefined) {
        notes.set(doc._id, { note, stored: doc, since, until });
      }
    }
  }
  if (why !== undefined && notes.size === 0) {
    throw why;
  }
  return { at: shown, notes, unreadable };
}

/** The versions of a note without those that are damaged or cannot be decrypted. */
export async function readVersions(
  source: HistorySource,
  cipher: NoteCipher,
  document: string,
): Promise<readonly Omit<PastNote, "stored">[]> {
  const versions: Omit<PastNote, "stored">[] = [];
  for (const { doc, since, until } of await source.versions(document)) {
    const note = await readNote(cipher, doc);
    if (note !== undefined && !(note instanceof UnreadableNote)) {
      versions.push({ note, since, until });
    }
  }
  return versions;
}

/** A note, or why it cannot be decrypted; undefined for a document that is not a note. */
export async function readNote(
  cipher: NoteCipher,
  document: unknown,
): Promise<NoteDocument | UnreadableNote | undefined> {
  try {
    return await cipher.read(document);
  } catch (error) {
    if (error instanceof UnreadableNote) {
      return error;
    }
    throw error;
  }
}

/** Whether a file is the named one, or is in the named folder. */
export function isBelow(path: string, named: string | undefined): boolean {
  if (named === undefined) {
    return true;
  }
  const folder = withoutTrailingSlashes(named);
  return path === folder || path.startsWith(`${folder}/`);
}

/** Part of a note is not on the server, for example while a device uploads it. */
export class MissingChunk extends Failure {}

/** The bytes of a note. Throws a MissingChunk if a chunk is missing, and an UnreadableNote if one cannot be decrypted. */
export async function contentOf(
  source: HistorySource,
  cipher: NoteCipher,
  note: NoteDocument,
): Promise<Buffer> {
  const { children, eden, type, path } = note;
  // The oldest versions of the plugin stored short notes in the document itself.
  if (type === "notes") {
    return Buffer.from(String(note["data"] ?? ""));
  }
  const wanted = [...new Set(children)].filter((id) => !(id in eden));
  const data = new Map(
    Object.entries(eden).map(([id, each]) => [id, each.data]),
  );
  for (let at = 0; at < wanted.length; at += CHUNKS_PER_REQUEST) {
    for (const chunk of await source.chunks(
      wanted.slice(at, at + CHUNKS_PER_REQUEST),
    )) {
      data.set(chunk._id, await readChunk(cipher, chunk, path));
    }
  }
  const pieces = children.map((id) => {
    const piece = data.get(id);
    if (piece !== undefined) {
      return piece;
    }
    throw new MissingChunk(
      `part of "${path}" is missing on the server: sync the device that wrote it, then try again.`,
    );
  });
  return joinChunks(type, pieces);
}

async function readChunk(
  cipher: NoteCipher,
  chunk: Parameters<NoteCipher["chunk"]>[0],
  path: string,
): Promise<string> {
  try {
    return await cipher.chunk(chunk);
  } catch (error) {
    throw error instanceof UnreadableNote
      ? new UnreadableNote(
          `part of "${path}" cannot be decrypted: ${error.message}`,
          error,
        )
      : error;
  }
}

/**
 * Restores a vault, or the notes under `path`, to their state at `at`, with new revisions that devices then fetch. Notes that
 * did not exist then are deleted; throws if nothing under `path` existed.
 */
export async function restoreVault(
  source: HistorySource,
  cipher: NoteCipher,
  options: {
    readonly at: number;
    readonly path: string | undefined;
    readonly now: number;
  },
): Promise<Restored> {
  const { path, now } = options;
  const difference = await differenceSince(source, cipher, options);
  const { past, present, changed, added, unchanged } = difference;
  if (path !== undefined && changed.length + unchanged === 0) {
    throw new Failure(
      `"${path}" did not exist at ${new Date(past.at).toLocaleString("sv-SE")}. Run \`hearth notes history\` to list what existed.`,
    );
  }
  const documents = [
    ...(await Promise.all(
      changed.map(async ({ note, stored }) => {
        const { _rev: _then, deleted: _no, ...rest } = stored;
        const rev =
          present.notes.get(note._id)?.note._rev ??
          present.unreadable.get(note._id);
        return cipher.change(
          { ...rest, ...(rev === undefined ? {} : { _rev: rev }) },
          { mtime: now },
        );
      }),
    )),
    ...(await Promise.all(
      added.map(({ stored }) =>
        cipher.change(stored, { mtime: now, deleted: true }),
      ),
    )),
  ];
  const chunks = new Set(
    changed.flatMap(({ note }) =>
      note.children.filter((id) => !(id in note.eden)),
    ),
  );
  await source.write([], [...chunks]);
  for (let at = 0; at < documents.length; at += DOCUMENTS_PER_REQUEST) {
    await source.write(documents.slice(at, at + DOCUMENTS_PER_REQUEST), []);
  }
  return {
    at: past.at,
    written: changed.map(({ note }) => note.path).toSorted(),
    deleted: added.map(({ note }) => note.path).toSorted(),
    unchanged,
    unreadable: path === undefined ? unreadableBeside(difference) : [],
  };
}

/** Notes that are damaged or cannot be decrypted, now or as they were then, without those that are written again. */
function unreadableBeside({
  past,
  present,
  changed,
}: Difference): readonly string[] {
  const written = new Set(changed.map(({ note }) => note._id));
  return [...new Set([...past.unreadable.keys(), ...present.unreadable.keys()])]
    .filter((id) => !written.has(id))
    .toSorted();
}

/** Differences between `at` and now, in the vault or under `path`. */
export async function differenceSince(
  source: HistorySource,
  cipher: NoteCipher,
  {
    at,
    path,
    now,
  }: {
    readonly at: number;
    readonly path: string | undefined;
    readonly now: number;
  },
): Promise<Difference> {
  const past = await readVaultAt(source, cipher, at);
  // The store's own clock may be ahead of this one.
  const present = await readVaultAt(
    source,
    cipher,
    Math.max(now, (await source.summary()).now),
  );
  const isWanted = ({ note }: PastNote) =>
    !note.deleted && isBelow(note.path, path);
  const then = [...past.notes.values()].filter(isWanted);
  const ids = new Set(then.map(({ note }) => note._id));
  const changed = then.filter(
    ({ note }) => !isSame(note, present.notes.get(note._id)?.note),
  );
  return {
    past,
    present,
    changed,
    added: [...present.notes.values()]
      .filter(isWanted)
      .filter(({ note }) => !ids.has(note._id))
      .filter(({ note }) => !past.unreadable.has(note._id)),
    unchanged: then.length - changed.length,
  };
}

function isSame(
  past: NoteDocument,
  present: NoteDocument | undefined,
): boolean {
  return (
    present !== undefined &&
    !present.deleted &&
    present.path === past.path &&
    present.type === past.type &&
    present["data"] === past["data"] &&
    isDeepStrictEqual(present.children, past.children) &&
    isDeepStrictEqual(Object.keys(present.eden), Object.keys(past.eden))
  );
}
