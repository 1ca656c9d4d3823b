import { z } from "zod";
import { Failure } from "../../core/failure.ts";
import { isStoreFailure } from "./couch.ts";
import type { HistorySource, StoreSpace } from "./history-source.ts";
import { NoteCipher } from "./note-cipher.ts";
import { isBelow, readVaultAt, type PastVault } from "./vault-past.ts";
import { withoutTrailingSlashes } from "../../core/trailing-slashes.ts";
import { counted } from "../../core/words.ts";
import { sum } from "../../core/sum.ts";

const part = z.looseObject({ count: z.number(), bytes: z.number() });
const folder = z.looseObject({
  /** Ends with a slash if it is a folder. */
  path: z.string(),
  files: z.number(),
  bytes: z.number(),
});

/** Use of space of a vault in bytes, as last measured. */
export const vaultSpace = z.looseObject({
  at: z.number(),
  file: z.number(),
  /** Largest first; null if the paths are encrypted. */
  folders: z.array(folder).nullable(),
  /** Folders and files that are not listed. */
  smaller: part,
  /** Chunks that no current note uses; null if unknown. */
  unused: part.nullable(),
  chunks: z.number(),
  notes: z.number(),
  history: z.number(),
  reclaimable: z.number(),
  /** Indexes, revision trees, records of deletions and of the plugin. */
  other: z.number(),
});

export type VaultSpace = Readonly<z.output<typeof vaultSpace>>;
type FolderSpace = z.output<typeof folder>;

const MAX_FOLDERS = 20;
const none = { count: 0, bytes: 0 };

/** As far as the server can read it: everything in a plain vault, sums in an encrypted one. */
export async function measureVault(
  source: HistorySource,
  vault: string,
): Promise<VaultSpace> {
  const stored = await source.space();
  const { salt, now } = await source.summary();
  const cipher = new NoteCipher(vault, salt, () =>
    Promise.reject(new Failure("the vault is encrypted.")),
  );
  try {
    return spaceOf(stored, await readVaultAt(source, cipher, now));
  } catch (error) {
    // With any kind of encryption.
    if (isStoreFailure(error)) {
      throw error;
    }
    return spaceOf(stored);
  }
}

/** The parts of a vault by size; with its notes, also by the entries directly in `below`. */
export function spaceOf(
  stored: StoreSpace,
  vault?: PastVault,
  below?: string,
): VaultSpace {
  const { file, free, notes, chunks, superseded, history } = stored;
  const parts = notes.bytes + chunks.bytes + superseded.bytes + history.bytes;
  return {
    at: vault?.at ?? Date.now(),
    file,
    ...(vault === undefined
      ? { folders: null, smaller: none, unused: null }
      : byFolder(stored, vault, below)),
    chunks: chunks.bytes,
    notes: notes.bytes,
    history: history.bytes,
    reclaimable: superseded.bytes + free,
    other: Math.max(0, file - free - parts),
  };
}

/** A chunk shared by several files counts for the first of them. */
function byFolder(
  { chunkSizes }: StoreSpace,
  vault: PastVault,
  below: string | undefined,
): Pick<VaultSpace, "folders" | "smaller" | "unused"> {
  const sizes = new Map(chunkSizes);
  const folders = new Map<string, FolderSpace>();
  const files = [...vault.notes.values()]
    .map(({ note }) => note)
    .filter(({ deleted }) => !deleted)
    .toSorted((a, b) => (a.path < b.path ? -1 : 1));
  for (const { path, children } of files) {
    let bytes = 0;
    for (const id of children) {
      bytes += sizes.get(id) ?? 0;
      sizes.delete(id);
    }
    if (!isBelow(path, below)) {
      continue;
    }
    const name = entryOf(path, below);
    const { files: count, bytes: before } = folders.get(name) ?? {
      files: 0,
      bytes: 0,
    };
    folders.set(name, { path: name, files: count + 1, bytes: before + bytes });
  }
  const bySize = [...folders.values()].toSorted((a, b) => b.bytes - a.bytes);
  return {
    folders: bySize.slice(0, MAX_FOLDERS),
    smaller: sumOf(bySize.slice(MAX_FOLDERS).map(({ bytes }) => bytes)),
    unused: sumOf([...sizes.values()]),
  };
}

function sumOf(bytes: readonly number[]): z.output<typeof part> {
  return {
    count: bytes.length,
    bytes: sum(bytes),
  };
}

/** The folder directly in `below` that contains the file, or the file itself. */
function entryOf(path: string, below: string | undefined): string {
  const from =
    below === undefined ? 0 : withoutTrailingSlashes(below).length + 1;
  const end = path.indexOf("/", from);
  return end < 0 ? path : path.slice(0, end + 1);
}

/** Rows for display: folders, then everything that is not content of a current note, then the total. */
export function rowsOf(space: VaultSpace): readonly {
  readonly name: string;
  readonly bytes: number;
  readonly note: string;
  /** Percent of the whole file. */
  readonly share: number;
}[] {
  const { folders, smaller, unused, history, reclaimable, notes } = space;
  const rows = [
    ...(folders ?? []).map(({ path, files, bytes }) => ({
      name: path,
      bytes,
      note: path.endsWith("/") ? counted(files, "file") : "",
    })),
    ...(folders === null
      ? [{ name: "(chunks)", bytes: space.chunks, note: "content of notes" }]
      : []),
    ...(smaller.count === 0
      ? []
      : [
          {
            name: "(others)",
            bytes: smaller.bytes,
            note: `${smaller.count} smaller folders and files`,
          },
        ]),
    ...(unused === null
      ? []
      : [
          {
            name: "(old chunks)",
            bytes: unused.bytes,
            note: "used by no current note; earlier and conflicted versions may use them",
          },
        ]),
    { name: "(history)", bytes: history, note: "earlier versions" },
    {
      name: "(superseded)",
      bytes: reclaimable,
      note: "freed by compaction",
    },
    { name: "(notes)", bytes: notes, note: "their lists of chunks" },
    {
      name: "(other)",
      bytes: space.other,
      note: "indexes, revision trees, deletions",
    },
    { name: "Total", bytes: space.file, note: "" },
  ];
  return rows.map((row) => ({
    ...row,
    share: Math.round((100 * row.bytes) / Math.max(1, space.file)),
  }));
}
