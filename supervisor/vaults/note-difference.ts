import { isStoreFailure } from "./couch.ts";
import type { HistorySource } from "./history-source.ts";
import type { NoteCipher } from "./note-cipher.ts";
import { contentOf, type Difference, type PastNote } from "./vault-past.ts";

/** A file that differs between two points in time. */
export interface DifferingFile {
  readonly path: string;
  /** What happened to it since then. */
  readonly state: "changed" | "deleted" | "added";
  /** Bytes; of the past version if there is one. */
  readonly size: number;
}

const MAX_TEXT_LENGTH = 200_000;

/** Sorted by path. */
export function differingFiles({
  changed,
  added,
  present,
}: Difference): readonly DifferingFile[] {
  return [
    ...changed.map(({ note }) => ({
      path: note.path,
      state: isThere(present.notes.get(note._id))
        ? ("changed" as const)
        : ("deleted" as const),
      size: note.size,
    })),
    ...added.map(({ note }) => ({
      path: note.path,
      state: "added" as const,
      size: note.size,
    })),
  ].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

/** The past version of the note with this path, else the current one. */
export function findNote(
  path: string | undefined,
  { past, present }: Difference,
): PastNote | undefined {
  const isNamed = ({ note }: PastNote) => note.path === path;
  return (
    [...past.notes.values()].find(isNamed) ??
    [...present.notes.values()].find(isNamed)
  );
}

/** The past and the current text of a note, empty if it does not exist; null if one is not text, too long, or incomplete. */
export async function textsOf(
  source: HistorySource,
  cipher: NoteCipher,
  { past, present }: Difference,
  single: PastNote | undefined,
): Promise<readonly [string, string] | null> {
  if (single === undefined) {
    return null;
  }
  const texts: string[] = [];
  for (const { notes } of [past, present]) {
    const version = notes.get(single.note._id);
    if (version === undefined || !isThere(version)) {
      texts.push("");
    } else if (
      version.note.type === "newnote" ||
      version.note.size > MAX_TEXT_LENGTH
    ) {
      return null;
    } else {
      try {
        texts.push((await contentOf(source, cipher, version.note)).toString());
      } catch (error) {
        // A chunk never arrived: other differences are still displayed.
        if (isStoreFailure(error)) {
          throw error;
        }
        return null;
      }
    }
  }
  const [then = "", now = ""] = texts;
  return [then, now];
}

function isThere(version: PastNote | undefined): boolean {
  return version !== undefined && !version.note.deleted;
}
