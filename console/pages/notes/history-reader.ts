import { Failure } from "../../../core/failure.ts";
import { momentWithSeconds } from "../../../core/words.ts";
import type {
  HistorySource,
  HistorySummary,
} from "../../../supervisor/vaults/history-source.ts";
import { NoteCipher } from "../../../supervisor/vaults/note-cipher.ts";
import { parseMoment } from "../../../supervisor/vaults/moment.ts";
import {
  differenceSince,
  type Difference,
} from "../../../supervisor/vaults/vault-past.ts";
import {
  findNote,
  textsOf,
} from "../../../supervisor/vaults/note-difference.ts";

/** The requested time in milliseconds since 1970, and path. */
export interface HistoryQuery {
  readonly at: number | undefined;
  readonly path: string | undefined;
}

interface NoteVersion {
  readonly since: number;
  readonly until: number | null;
  readonly bytes: number;
  readonly deleted: boolean;
}

export interface HistoryFacts {
  readonly summary: HistorySummary;
  readonly shown:
    | { readonly kind: "nothing" | "encrypted" }
    | {
        readonly kind: "difference";
        readonly difference: Difference;
        /** For a single note, where both versions are text. */
        readonly texts: readonly [string, string] | null;
        /** For a single note, newest first. */
        readonly versions: readonly NoteVersion[];
      };
}

/** Reads the data of a vault's history page; of an encrypted vault only that it is encrypted. */
export async function readHistory(
  source: HistorySource,
  vault: string,
  { at, path }: HistoryQuery,
  { summary, now }: { readonly summary: HistorySummary; readonly now: number },
): Promise<HistoryFacts> {
  if (at === undefined && path === undefined) {
    return { summary, shown: { kind: "nothing" } };
  }
  const cipher = sealedCipher(vault, summary);
  try {
    const difference = await differenceSince(source, cipher, {
      at: at ?? now,
      path,
      now,
    });
    const single = findNote(path, difference);
    return {
      summary,
      shown: {
        kind: "difference",
        difference,
        texts: await textsOf(source, cipher, difference, single),
        versions:
          single === undefined
            ? []
            : await versionsOf(source, cipher, single.note._id),
      },
    };
  } catch (error) {
    if (error instanceof SealedVault) {
      return { summary, shown: { kind: "encrypted" } };
    }
    throw error;
  }
}

interface TypedTime {
  /** Milliseconds since 1970; undefined if none was typed. */
  readonly at: number | undefined;
  readonly mistake?: string;
}

/** The typed time, which the history must reach; `from` is its start. */
export function readTime(
  typed: string,
  from: number,
  now: number,
  timeZone: string,
): TypedTime {
  if (typed.trim() === "") {
    return { at: undefined };
  }
  try {
    const at = parseMoment(typed, now);
    return at >= from
      ? { at }
      : {
          at: undefined,
          mistake: `The history starts on ${momentWithSeconds(from, timeZone)}. Choose a later time.`,
        };
  } catch (error) {
    if (!(error instanceof Failure)) {
      throw error;
    }
    return { at: undefined, mistake: error.message };
  }
}

class SealedVault extends Failure {}

/** Reads unencrypted notes only: the server never has the passphrase. */
export function sealedCipher(
  vault: string,
  { salt }: HistorySummary,
): NoteCipher {
  return new NoteCipher(vault, salt, () =>
    Promise.reject(
      new SealedVault(
        `vault ${vault} is encrypted; run \`hearth notes restore ${vault}\` to restore it with its passphrase.`,
      ),
    ),
  );
}

async function versionsOf(
  source: HistorySource,
  cipher: NoteCipher,
  document: string,
): Promise<readonly NoteVersion[]> {
  const versions = (await source.versions(document)).filter(
    ({ damaged }) => damaged !== true,
  );
  return Promise.all(
    versions.map(async ({ doc, since, until }) => {
      const note = await cipher.read(doc);
      return {
        since,
        until,
        bytes: note?.size ?? 0,
        deleted: note?.deleted === true,
      };
    }),
  );
}
