import { isStoreFailure } from "./couch.ts";
import type { HistorySource } from "./history-source.ts";
import type { NoteCipher } from "./note-cipher.ts";
import { contentOf, type Difference, type PastNote } from "./vault-past.ts";

/** A file that is not as it was. */
export interface DifferingFile {
  readonly path: string;
  /** What happened to it since then. */
  readonly state: "changed" | "deleted" | "added";
  /** Bytes; of a file that was there then, as it was. */
  readonly size: number;
}

const LONGEST_TEXT = 200_000;

/** By path. */
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

/** The note of this path, as it was or else as it is. */
export function noteNamed(
  path: string | undefined,
  { past, present }: Difference,
): PastNote | undefined {
  const isNamed = ({ note }: PastNote) => note.path === path;
  return (
    [...past.notes.values()].find(isNamed) ??
    [...present.notes.values()].find(isNamed)
  );
}

/** What a note was and what it is, empty where it is not there; null where one is no text, too long, or incomplete. */
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
      version.note.size > LONGEST_TEXT
    ) {
      return null;
    } else {
      try {
        texts.push((await contentOf(source, cipher, version.note)).toString());
      } catch (error) {
        // A chunk that never arrived: what else differs is shown all the same.
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
