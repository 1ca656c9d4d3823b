import { rmSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { writeCompressed } from "../backup/backup-files.ts";
import { AnswerTooLarge } from "../checks/http-get.ts";
import type { BackupFile } from "../backup/manifest.ts";
import {
  leafOf,
  readLeaves,
  type VaultEntry,
  type VaultHead,
} from "./backup-format.ts";
import type { DatabaseInfo } from "./couch-answers.ts";
import type { CouchDocument, Database } from "./database.ts";
import {
  leavesKey,
  linkPart,
  partsToMerge,
  readEarlier,
  type EarlierVault,
} from "./earlier-backup.ts";
import { MILESTONE_ID, SEED_ID } from "./livesync.ts";
import { acceptedSeed, mutable, type Escrow } from "./seed-escrow.ts";
import { sum } from "../../core/sum.ts";

/** The number of documents per request is adjusted to responses of about this size. */
const RESPONSE_BYTES = 4_000_000;
const MAX_PER_REQUEST = 200;
/** A longer response is requested again in parts: notes of some bytes can precede chunks of some megabytes. */
const MAX_RESPONSE_BYTES = 32_000_000;

interface ReadOptions {
  readonly database: Database;
  readonly info: DatabaseInfo;
  readonly signal: AbortSignal;
  readonly progress: (done: number) => void;
}

interface VaultBackupOptions extends ReadOptions {
  /** With the seed of an earlier backup if its file was lost or is damaged, which the check of the vault reports. */
  readonly escrow: Escrow;
  /** The newest backup, `backups/notes/<name>`; undefined for the first one. */
  readonly newest: string | undefined;
  /** Directory of the backup that is being created. */
  readonly making: string;
  /** Prefix of its file names. */
  readonly prefix: string;
  readonly onDamage: (path: string) => void;
}

/** The earlier backup contains documents of which the database has no trace, so it cannot be the base of a new one. */
class EarlierBackupUnusable extends Error {}

/** Stores what differs from the previous backup and links to the rest; stores everything where there is no usable backup. */
export async function backUpVault(options: VaultBackupOptions): Promise<{
  readonly entry: VaultEntry;
  readonly files: readonly BackupFile[];
}> {
  const { database, info, newest, signal } = options;
  const earlier = await readEarlier(
    ...([newest, database.name, info.instance_start_time] as const),
    ...([signal, options.onDamage] as const),
  );
  try {
    return await writeVault(options, earlier);
  } catch (error) {
    if (!(error instanceof EarlierBackupUnusable)) {
      throw error;
    }
    rmSync(join(options.making, `${options.prefix}.jsonl.gz`), { force: true });
    return writeVault(options, undefined);
  }
}

async function writeVault(
  options: VaultBackupOptions,
  earlier: EarlierVault | undefined,
): Promise<{
  readonly entry: VaultEntry;
  readonly files: readonly BackupFile[];
}> {
  const { database, info, making, prefix, signal } = options;
  const count = countLeaves();
  const written = { bytes: 0, merged: 0 };
  const lines = vaultLines(options, earlier, count, written);
  const own = await writeCompressed(
    ...([making, `${prefix}.jsonl.gz`, Readable.from(lines), signal] as const),
  );
  const linked =
    earlier?.parts
      .slice(written.merged)
      .map((part) => linkPart(earlier, part, prefix, making)) ?? [];
  return {
    entry: {
      name: database.name,
      file: own.name,
      size: written.bytes,
      instance: info.instance_start_time,
      ...count.result(),
      parts: linked.map(({ part }) => part),
    },
    files: [own, ...linked.map(({ file }) => file)],
  };
}

/** The head, the documents that differ from the earlier backup, and the content of its newest files that is merged into this one. */
async function* vaultLines(
  options: VaultBackupOptions,
  earlier: EarlierVault | undefined,
  count: ReturnType<typeof countLeaves>,
  written: { bytes: number; merged: number },
): AsyncGenerator<string> {
  yield `${JSON.stringify(await headOf(options))}\n`;
  const changed = new Set<string>();
  let live = 0;
  const isUnchanged = (id: string, revisions: readonly string[]): boolean => {
    const known = earlier?.documents.get(id);
    // A document that changes during the backup appears again later in the feed, and must then count as changed.
    earlier?.documents.delete(id);
    const same = !changed.has(id) && known?.leaves === leavesKey(revisions);
    if (same) {
      live += known.bytes;
    } else {
      changed.add(id);
    }
    return same;
  };
  for await (const line of changedLines(options, count, isUnchanged)) {
    written.bytes += line.length;
    yield line;
  }
  if (earlier === undefined) {
    return;
  }
  if (earlier.documents.size > 0) {
    throw new EarlierBackupUnusable();
  }
  const { parts, backup } = earlier;
  written.merged = partsToMerge(parts, written.bytes, live);
  const [newest, ...older] = parts.slice(0, written.merged);
  if (newest === undefined) {
    return;
  }
  const merged = { file: newest.file, parts: older };
  for await (const line of readLeaves(backup, merged)) {
    if (changed.has(leafOf(line).id)) {
      continue;
    }
    written.bytes += line.length + 1;
    yield `${line}\n`;
  }
}

/** Reads every leaf of a vault, as a full backup does. Returns the ids of documents with a leaf that the store did not return. */
export async function unreadableDocuments(
  options: ReadOptions,
): Promise<readonly string[]> {
  const count = countLeaves();
  const lines = changedLines(options, count, () => false);
  while ((await lines.next()).done !== true) {
    // Only what is missing counts.
  }
  return count.result().missing;
}

async function* changedLines(
  { database, info, signal, progress }: ReadOptions,
  count: ReturnType<typeof countLeaves>,
  isUnchanged: (id: string, revisions: readonly string[]) => boolean,
): AsyncGenerator<string> {
  const rows = info.doc_count + info.doc_del_count;
  let seen = 0;
  let perRequest = 20;
  const pages = database.changePages({
    since: "0",
    allLeaves: true,
    signal,
  });
  for await (const { results } of pages) {
    const wanted = results.flatMap(({ id, changes }) => {
      const revisions = changes.map(({ rev }) => rev);
      count.row(id, revisions.length);
      return isUnchanged(id, revisions)
        ? []
        : revisions.map((rev) => ({ id, rev }));
    });
    for (let at = 0; at < wanted.length;) {
      const part = wanted.slice(at, at + perRequest);
      const documents = await readPart(database, part, signal);
      if (documents === undefined) {
        perRequest = Math.ceil(part.length / 4);
        continue;
      }
      for (const { id, rev } of part) {
        if (!documents.some((each) => each._id === id && each._rev === rev)) {
          count.without(id);
        }
      }
      let bytes = 0;
      for (const document of documents) {
        const line = JSON.stringify(document);
        bytes += line.length;
        yield `${line}\n`;
      }
      at += part.length;
      perRequest = nextAmount(perRequest, bytes);
    }
    seen += results.length;
    progress(rows === 0 ? 1 : Math.min(1, seen / rows));
  }
}

/** Undefined if the response is too long, and a part can be smaller. A single document has any length that can be read at once. */
async function readPart(
  database: Database,
  part: readonly { readonly id: string; readonly rev: string }[],
  signal: AbortSignal,
): Promise<readonly CouchDocument[] | undefined> {
  const maxBytes = part.length === 1 ? Infinity : MAX_RESPONSE_BYTES;
  try {
    return await database.revisions(part, { signal, maxBytes });
  } catch (error) {
    if (part.length > 1 && error instanceof AnswerTooLarge) {
      return undefined;
    }
    throw error;
  }
}

function nextAmount(amount: number, bytes: number): number {
  if (bytes > RESPONSE_BYTES) {
    return Math.max(1, Math.floor(amount / 2));
  }
  return bytes < RESPONSE_BYTES / 4
    ? Math.min(MAX_PER_REQUEST, amount * 2)
    : amount;
}

/** The accepted seed, and the rules from before access was blocked because another one appeared: a restored vault is usable. */
async function headOf({
  database,
  info,
  escrow,
}: VaultBackupOptions): Promise<VaultHead> {
  const seed =
    escrow.instance === info.instance_start_time
      ? acceptedSeed(escrow)
      : undefined;
  const before =
    seed === undefined
      ? undefined
      : (escrow.closed?.rules ?? (await database.rulesBeforeBlock()));
  const { admins, members } = before ?? (await database.security());
  const locals: (
    { readonly _id: string; readonly _rev?: string } | undefined
  )[] = [
    seed === undefined
      ? await database.document(SEED_ID)
      : { ...seed, _id: SEED_ID },
    await database.document(MILESTONE_ID),
  ];
  return {
    vault: database.name,
    instance: info.instance_start_time,
    security: { admins: mutable(admins), members: mutable(members) },
    locals: locals
      .filter((document) => document !== undefined)
      .map(({ _rev: _revision, ...document }) => document),
  };
}

/** Counts documents and leaves as of the end of the backup: documents that change meanwhile appear again later in the feed. */
function countLeaves() {
  const leaves = new Map<string, number>();
  const missing = new Set<string>();
  return {
    row: (id: string, revisions: number) => {
      leaves.set(id, revisions);
      missing.delete(id);
    },
    without: (id: string) => {
      leaves.set(id, (leaves.get(id) ?? 1) - 1);
      missing.add(id);
    },
    result: () => ({
      documents: leaves.size,
      leaves: sum(leaves.values()),
      missing: [...missing],
    }),
  };
}
