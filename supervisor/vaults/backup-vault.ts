import { rmSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { writeCompressed } from "../backup/backup-files.ts";
import type { BackupFile } from "../backup/manifest.ts";
import {
  leafOf,
  readLeaves,
  type VaultEntry,
  type VaultHead,
} from "./backup-format.ts";
import type { CouchDocument, Database, DatabaseInfo } from "./database.ts";
import {
  leavesKey,
  linkPart,
  partsToTakeIn,
  readEarlier,
  type EarlierVault,
} from "./earlier-backup.ts";
import { MILESTONE_ID, SEED_ID } from "./livesync.ts";

const PAGE_ROWS = 500;
/** Documents are asked for so many at a time that an answer stays near this size. */
const ANSWER_BYTES = 4_000_000;
const MOST_AT_ONCE = 200;

export interface VaultAsk {
  readonly database: Database;
  readonly info: DatabaseInfo;
  /** `backups/notes` */
  readonly directory: string;
  /** The backup that is being made. */
  readonly making: string;
  /** Of the names of its files. */
  readonly prefix: string;
  readonly signal: AbortSignal;
  readonly onDamage: (path: string) => void;
  readonly progress: (done: number) => void;
}

/** The earlier backup has documents that the database has lost without a trace: it is no base for the new one. */
class EarlierBackupUnusable extends Error {}

/** Stores what differs from the backup before and links to the rest; everything where there is nothing to build on. */
export async function backUpVault(ask: VaultAsk): Promise<{
  readonly entry: VaultEntry;
  readonly files: readonly BackupFile[];
}> {
  const { database, info, directory, signal } = ask;
  const earlier = await readEarlier(
    ...([directory, database.name, info.instance_start_time] as const),
    ...([signal, ask.onDamage] as const),
  );
  try {
    return await writeVault(ask, earlier);
  } catch (error) {
    if (!(error instanceof EarlierBackupUnusable)) {
      throw error;
    }
    rmSync(join(ask.making, `${ask.prefix}.jsonl.gz`), { force: true });
    return writeVault(ask, undefined);
  }
}

async function writeVault(
  ask: VaultAsk,
  earlier: EarlierVault | undefined,
): Promise<{
  readonly entry: VaultEntry;
  readonly files: readonly BackupFile[];
}> {
  const { database, info, making, prefix, signal } = ask;
  const count = countLeaves();
  const written = { bytes: 0, takenIn: 0 };
  const lines = vaultLines(ask, earlier, count, written);
  const own = await writeCompressed(
    ...([making, `${prefix}.jsonl.gz`, Readable.from(lines), signal] as const),
  );
  const linked =
    earlier?.parts
      .slice(written.takenIn)
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

/** The head, the documents that the earlier backup does not have as they are, and what is taken in of its newest files. */
async function* vaultLines(
  ask: VaultAsk,
  earlier: EarlierVault | undefined,
  count: ReturnType<typeof countLeaves>,
  written: { bytes: number; takenIn: number },
): AsyncGenerator<string> {
  const { database, info } = ask;
  const head: VaultHead = {
    vault: database.name,
    instance: info.instance_start_time,
    security: await mutableSecurity(database),
    locals: await localDocuments(database),
  };
  yield `${JSON.stringify(head)}\n`;
  const changed = new Set<string>();
  let live = 0;
  const isUnchanged = (id: string, revisions: readonly string[]): boolean => {
    const known = earlier?.documents.get(id);
    // What changes meanwhile comes again, later in the feed; then it is not known any more.
    earlier?.documents.delete(id);
    const same = !changed.has(id) && known?.leaves === leavesKey(revisions);
    if (same) {
      live += known.bytes;
    } else {
      changed.add(id);
    }
    return same;
  };
  for await (const line of changedLines(ask, count, isUnchanged)) {
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
  written.takenIn = partsToTakeIn(parts, written.bytes, live);
  const [newest, ...older] = parts.slice(0, written.takenIn);
  if (newest === undefined) {
    return;
  }
  const takenIn = { file: newest.file, parts: older };
  for await (const line of readLeaves(backup, takenIn)) {
    if (changed.has(leafOf(line).id)) {
      continue;
    }
    written.bytes += line.length + 1;
    yield `${line}\n`;
  }
}

async function* changedLines(
  { database, info, signal, progress }: VaultAsk,
  count: ReturnType<typeof countLeaves>,
  isUnchanged: (id: string, revisions: readonly string[]) => boolean,
): AsyncGenerator<string> {
  const rows = info.doc_count + info.doc_del_count;
  let seen = 0;
  let atOnce = 20;
  let since = "0";
  for (;;) {
    const page = await database.changes({
      since,
      limit: PAGE_ROWS,
      allLeaves: true,
      signal,
    });
    const wanted = page.results.flatMap(({ id, changes }) => {
      const revisions = changes.map(({ rev }) => rev);
      count.row(id, revisions.length);
      return isUnchanged(id, revisions)
        ? []
        : revisions.map((rev) => ({ id, rev }));
    });
    for (let at = 0; at < wanted.length;) {
      const part = wanted.slice(at, at + atOnce);
      const documents = await database.revisions(part, { signal });
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
      atOnce = nextAmount(atOnce, bytes);
    }
    seen += page.results.length;
    progress(rows === 0 ? 1 : Math.min(1, seen / rows));
    since = page.last_seq;
    if (page.results.length < PAGE_ROWS) {
      return;
    }
  }
}

function nextAmount(amount: number, bytes: number): number {
  if (bytes > ANSWER_BYTES) {
    return Math.max(1, Math.floor(amount / 2));
  }
  return bytes < ANSWER_BYTES / 4 ? Math.min(MOST_AT_ONCE, amount * 2) : amount;
}

async function localDocuments(
  database: Database,
): Promise<{ _id: string; [member: string]: unknown }[]> {
  const found: (CouchDocument | undefined)[] = [];
  for (const id of [SEED_ID, MILESTONE_ID]) {
    found.push(await database.document(id));
  }
  return found
    .filter((document) => document !== undefined)
    .map(({ _rev: _revision, ...document }) => ({ ...document }));
}

async function mutableSecurity(
  database: Database,
): Promise<VaultHead["security"]> {
  const { admins, members } = await database.security();
  const copy = ({ names, roles }: typeof admins) => ({
    names: [...names],
    roles: [...roles],
  });
  return { admins: copy(admins), members: copy(members) };
}

/** Documents and leaves as they stand at the end: what changes meanwhile comes again, later in the feed. */
function countLeaves() {
  const leaves = new Map<string, number>();
  const missing = new Set<string>();
  return {
    row: (id: string, revisions: number) => {
      leaves.set(id, revisions);
      missing.delete(id);
    },
    without: (id: string) => missing.add(id),
    result: () => ({
      documents: leaves.size,
      leaves: [...leaves.values()].reduce((sum, count) => sum + count, 0),
      missing: [...missing],
    }),
  };
}
