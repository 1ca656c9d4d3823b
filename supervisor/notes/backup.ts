import { existsSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { beginBackup, writeCompressed } from "../backup/backup-files.ts";
import {
  backupName,
  writeManifest,
  type BackupFile,
} from "../backup/manifest.ts";
import {
  configFile,
  usersFile,
  type NotesManifest,
  type VaultEntry,
  type VaultHead,
} from "./backup-format.ts";
import { inMegabytes } from "./compaction.ts";
import type { Couch } from "./couch.ts";
import {
  openDatabase,
  vaultNames,
  type CouchDocument,
  type Database,
  type DatabaseInfo,
} from "./database.ts";
import { milestoneId, seedId } from "./livesync.ts";
import { openUsers } from "./users.ts";

export type BackupAsk = {
  readonly couch: Couch;
  /** `backups/notes`: each backup is a directory in it. */
  readonly directory: string;
  readonly now: () => number;
  readonly signal: AbortSignal;
  /** A sentence, and the part done from 0 to 1. */
  readonly progress: (text: string, done?: number) => void;
};

export type TakenBackup = {
  readonly name: string;
  readonly path: string;
  readonly bytes: number;
  readonly manifest: NotesManifest;
};

const pageRows = 500;
/** Documents are asked for so many at a time that an answer stays near this size. */
const answerBytes = 4_000_000;
const mostAtOnce = 200;

/** Copies every leaf of every vault with its history, the two documents that replication leaves out, rules, users and settings. */
export async function backupNotes(ask: BackupAsk): Promise<TakenBackup> {
  const { couch, directory, now, signal, progress } = ask;
  const vaults = await infos(couch);
  const total = vaults.reduce((sum, { info }) => sum + info.sizes.active, 0);
  const takenAt = freeMoment(directory, now());
  const name = backupName(takenAt);
  const making = beginBackup(directory, name);
  try {
    const files: BackupFile[] = [];
    const entries: VaultEntry[] = [];
    const write = async (
      file: string,
      lines: AsyncIterable<string> | Iterable<string>,
    ) =>
      files.push(
        await writeCompressed(
          making.directory,
          file,
          Readable.from(lines),
          signal,
        ),
      );
    let bytesDone = 0;
    for (const [index, { database, info }] of vaults.entries()) {
      const file = `vault-${index + 1}.jsonl.gz`;
      const count = countLeaves();
      const { active } = info.sizes;
      await write(
        file,
        vaultLines(database, info, count, signal, (done) =>
          progress(
            `vault ${database.name}`,
            (bytesDone + done * active) / Math.max(1, total),
          ),
        ),
      );
      bytesDone += active;
      entries.push({ name: database.name, file, ...count.result() });
    }
    const users = await openUsers(couch).all();
    await write(
      usersFile,
      users.map((user) => `${JSON.stringify(user)}\n`),
    );
    const config = await couch.ask("GET", "/_node/_local/_config", { signal });
    await write(configFile, [`${JSON.stringify(config, null, 2)}\n`]);
    const manifest: NotesManifest = {
      format: 1,
      kind: "notes",
      takenAt,
      files: [...files],
      vaults: entries,
      users: users.length,
    };
    writeManifest(making.directory, manifest);
    signal.throwIfAborted();
    making.finish();
    return {
      name,
      path: join(directory, name),
      manifest,
      bytes: files.reduce((sum, file) => sum + file.bytes, 0),
    };
  } catch (error) {
    making.abandon();
    throw error;
  }
}

/** A backup's name has seconds; two within one get two names. */
function freeMoment(directory: string, at: number): number {
  let moment = at;
  while (existsSync(join(directory, backupName(moment)))) moment += 1000;
  return moment;
}

async function infos(
  couch: Couch,
): Promise<
  readonly { readonly database: Database; readonly info: DatabaseInfo }[]
> {
  const found = [];
  for (const name of await vaultNames(couch)) {
    const database = openDatabase(couch, name);
    const info = await database.info();
    if (info !== undefined) found.push({ database, info });
  }
  return found;
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

async function* vaultLines(
  database: Database,
  info: DatabaseInfo,
  count: ReturnType<typeof countLeaves>,
  signal: AbortSignal,
  progress: (done: number) => void,
): AsyncGenerator<string> {
  const head: VaultHead = {
    vault: database.name,
    instance: info.instance_start_time,
    security: await mutableSecurity(database),
    locals: await localDocuments(database),
  };
  yield `${JSON.stringify(head)}\n`;
  const rows = info.doc_count + info.doc_del_count;
  let seen = 0;
  let atOnce = 20;
  let since = "0";
  for (;;) {
    const page = await database.changes({
      since,
      limit: pageRows,
      allLeaves: true,
      signal,
    });
    for (const { id, changes } of page.results) count.row(id, changes.length);
    const wanted = page.results.flatMap(({ id, changes }) =>
      changes.map(({ rev }) => ({ id, rev })),
    );
    for (let at = 0; at < wanted.length;) {
      const part = wanted.slice(at, at + atOnce);
      const documents = await database.revisions(part, { signal });
      for (const { id, rev } of part)
        if (!documents.some((each) => each._id === id && each._rev === rev))
          count.without(id);
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
    if (page.results.length < pageRows) return;
  }
}

function nextAmount(amount: number, bytes: number): number {
  if (bytes > answerBytes) return Math.max(1, Math.floor(amount / 2));
  return bytes < answerBytes / 4 ? Math.min(mostAtOnce, amount * 2) : amount;
}

async function localDocuments(
  database: Database,
): Promise<{ _id: string; [member: string]: unknown }[]> {
  const found: (CouchDocument | undefined)[] = [];
  for (const id of [seedId, milestoneId])
    found.push(await database.document(id));
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

/** What a backup holds, in a sentence. */
export function describeBackup({ name, bytes, manifest }: TakenBackup): string {
  const leaves = manifest.vaults.reduce((sum, vault) => sum + vault.leaves, 0);
  return `${manifest.vaults.length} ${manifest.vaults.length === 1 ? "vault" : "vaults"} with ${leaves} revisions in ${inMegabytes(bytes)}: ${name}`;
}
