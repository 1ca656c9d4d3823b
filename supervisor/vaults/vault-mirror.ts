import { Failure } from "../../core/failure.ts";
import type { HistorySource, NoteChanges } from "./history-source.ts";
import type { MirrorCounts, MirrorFolder } from "./mirror-folder.ts";
import {
  UnreadableNote,
  type NoteCipher,
  type NoteDocument,
} from "./note-cipher.ts";
import { contentOf, MissingChunk, readNote } from "./vault-past.ts";
import { filePathOf } from "./vault-paths.ts";

export interface MirrorOptions {
  readonly source: HistorySource;
  readonly cipher: NoteCipher;
  readonly folder: MirrorFolder;
  /** Called after the first pass, and then after each request for changes, at least every 20 s. */
  readonly passed: (counts: MirrorCounts) => Promise<void>;
  /** A message for the operator. */
  readonly report: (sentence: string) => void;
  readonly stop: AbortSignal;
  /** Delays before retries after a failure. */
  readonly pause: (stop: AbortSignal) => Promise<void>;
}

/** Notes to be written, including those with a part that is not on the server yet. */
type Pending = Map<string, { readonly note: NoteDocument; reported: boolean }>;

/**
 * Writes a vault into a folder and follows its changes until `stop`. A failure before the first pass is complete rejects with a
 * Failure; later failures are reported and retried.
 */
export async function mirrorVault(options: MirrorOptions): Promise<void> {
  const { source, folder, report, stop } = options;
  const pending: Pending = new Map();
  /** Notes of the vault, until the first pass is complete. */
  const live = new Set<string>();
  let since = "0";
  let isFirstPass = true;
  let lastFailure = "";

  const followOnce = async (): Promise<void> => {
    const { rows, next, more } = await source.changes(since);
    await enlist(options, rows, pending, live);
    await writePending(options, pending);
    since = next;
    if (!more && isFirstPass) {
      folder.removeExcept(live);
    }
    // With each page: the next start must know the files of an interrupted first pass, which can take hours.
    folder.save();
    if (more) {
      return;
    }
    isFirstPass = false;
    await options.passed(folder.counts());
    lastFailure = "";
  };

  while (!stop.aborted) {
    try {
      await followOnce();
    } catch (error) {
      if (stop.aborted) {
        folder.save();
        return;
      }
      if (!(error instanceof Failure) || isFirstPass) {
        throw error;
      }
      if (error.message !== lastFailure) {
        report(error.message);
      }
      lastFailure = error.message;
      await options.pause(stop);
    }
  }
}

async function enlist(
  { cipher, folder, report }: MirrorOptions,
  rows: NoteChanges["rows"],
  pending: Pending,
  live: Set<string>,
): Promise<void> {
  const unreadable = new Map<string, UnreadableNote>();
  for (const { id, doc } of rows) {
    const note = await readNote(cipher, doc);
    if (note instanceof UnreadableNote) {
      unreadable.set(id, note);
    } else if (note === undefined || note.deleted) {
      pending.delete(id);
      live.delete(id);
      folder.remove(id);
    } else {
      pending.set(id, { note, reported: false });
      live.add(id);
    }
  }
  for (const [id, why] of unreadable) {
    if (live.size === 0) {
      throw why;
    }
    // A file of an earlier version stays.
    live.add(id);
    pending.delete(id);
    report(`Not written: note ${id} (it is damaged or cannot be decrypted).`);
  }
}

async function writePending(
  { source, cipher, folder, report }: MirrorOptions,
  pending: Pending,
): Promise<void> {
  for (const [id, waiting] of pending) {
    const { note } = waiting;
    const path = filePathOf(note.path);
    const file = { id, rev: note._rev, path: path ?? "", mtime: note.mtime };
    try {
      if (path !== undefined && !folder.has(file)) {
        folder.put(file, await contentOf(source, cipher, note));
      }
      pending.delete(id);
    } catch (error) {
      if (!isOfOneNote(error, folder)) {
        throw error;
      }
      if (!waiting.reported) {
        report(error.message);
      }
      waiting.reported = true;
    }
  }
}

/** Whether the content of other notes can be read: with a wrong passphrase none can. */
function isOfOneNote(error: unknown, folder: MirrorFolder): error is Failure {
  return (
    error instanceof MissingChunk ||
    (error instanceof UnreadableNote && folder.counts().files > 0)
  );
}
