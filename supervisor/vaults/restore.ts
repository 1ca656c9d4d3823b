import { z } from "zod";
import { verifyFiles } from "../backup/backup-files.ts";
import { Failure } from "../../core/failure.ts";
import { closedRules, memberRules, sameRules } from "./access-rules.ts";
import {
  parseDocument,
  readHead,
  readLeaves,
  readLines,
  readNotesManifest,
  USERS_FILE,
  type NotesManifest,
  type VaultEntry,
  type VaultHead,
} from "./backup-format.ts";
import type { Couch } from "./couch.ts";
import { asExpected } from "./couch-answers.ts";
import {
  isScratch,
  openDatabase,
  vaultNames,
  type CouchDocument,
  type Database,
  type Security,
} from "./database.ts";
import { SEED_ID, seedOf } from "./livesync.ts";
import type { NotesState } from "./notes-state.ts";
import { accepting, type EscrowFiles } from "./seed-escrow.ts";
import { openUsers } from "./users.ts";
import type { VaultFiles } from "./vault-file.ts";
import { checkVaultName } from "./vault-names.ts";

export interface RestoreAsk {
  readonly couch: Couch;
  /** One backup: `backups/notes/<name>`. */
  readonly backup: string;
  /** This vault alone; all of the backup otherwise. */
  readonly vault?: string | undefined;
  /** Another name for that vault, beside the one that is there. */
  readonly as?: string | undefined;
  readonly state: NotesState;
  readonly escrow: EscrowFiles;
  readonly files: VaultFiles;
  /** Holds the names of the vaults that are being restored. */
  readonly busy: Set<string>;
  readonly now: () => number;
  readonly signal: AbortSignal;
  readonly progress: (text: string, done?: number) => void;
}

export interface RestoredVault {
  readonly vault: string;
  readonly from: string;
  readonly documents: number;
  readonly leaves: number;
}

/** Marks a database as half restored, from its first moment to its last; replication leaves it alone. */
const MARK_ID = "_local/hearth_restoring";
const BATCH_BYTES = 4_000_000;
const BATCH_DOCUMENTS = 200;

/**
 * Puts vaults of a backup back into databases that are not there or empty. Devices get in when all is there; one that was
 * broken off is dropped (`dropUnfinished`). Throws a Failure before anything is changed when a vault exists.
 */
export async function restoreNotes(
  ask: RestoreAsk,
): Promise<readonly RestoredVault[]> {
  const manifest = readNotesManifest(ask.backup);
  const plan = planOf(ask, manifest);
  for (const { target } of plan) {
    await needEmpty(ask.couch, target);
  }
  await verifyFiles(ask.backup, ask.signal, ask.progress);
  await restoreUsers(ask, undefined);
  const restored: RestoredVault[] = [];
  for (const { entry, target } of plan) {
    ask.busy.add(target);
    try {
      const head = await restoreVault({ ...ask, entry, target });
      await register(ask, target, head);
      if (target === entry.name) {
        await restoreUsers(ask, memberOf(head.security) ?? undefined);
      }
    } finally {
      ask.busy.delete(target);
    }
    restored.push({
      vault: target,
      from: entry.name,
      documents: entry.documents,
      leaves: entry.leaves,
    });
  }
  return restored;
}

function planOf(
  { backup, vault, as }: RestoreAsk,
  { vaults }: NotesManifest,
): readonly { readonly entry: VaultEntry; readonly target: string }[] {
  const names = vaults.map(({ name }) => name).join(", ");
  if (vault === undefined && as !== undefined && vaults.length !== 1) {
    throw new Failure(
      `the backup holds ${vaults.length} vaults (${names}): say which one with --vault.`,
    );
  }
  const chosen =
    vault === undefined ? vaults : vaults.filter(({ name }) => name === vault);
  if (vault !== undefined && chosen.length === 0) {
    throw new Failure(
      `the backup ${backup} has no vault "${vault}"; it has ${names === "" ? "none" : names}.`,
    );
  }
  return chosen.map((entry) => ({
    entry,
    target: as === undefined ? entry.name : checkVaultName(as),
  }));
}

async function needEmpty(couch: Couch, target: string): Promise<void> {
  const info = await openDatabase(couch, target).info();
  if (info === undefined || info.doc_count + info.doc_del_count === 0) {
    return;
  }
  throw new Failure(
    `there is a vault "${target}" with ${info.doc_count} documents, and a restore never overwrites: restore beside it with --as ${target}-restored, or remove it first with \`hearth notes remove ${target}\`.`,
  );
}

/**
 * Puts users back that are not there. The user of a vault that was put back under its own name gets its old password even
 * when there is one of the name (made for the empty vault): the devices know the old one.
 */
async function restoreUsers(
  { couch, backup, files }: RestoreAsk,
  of: string | undefined,
): Promise<void> {
  const users = openUsers(couch);
  for await (const line of readLines(backup, USERS_FILE)) {
    const document = parseDocument(line);
    if (of !== undefined && document["name"] !== of) {
      continue;
    }
    const changed = await users.putBack(document, of !== undefined);
    // What it says of the password is no longer true.
    if (changed && of !== undefined) {
      files.remove(of);
    }
  }
}

/** Fills one database from a backup, marked as unfinished and closed to devices until it is whole. */
export async function restoreVault(
  ask: Pick<RestoreAsk, "couch" | "backup" | "signal" | "progress"> & {
    readonly entry: VaultEntry;
    readonly target: string;
  },
): Promise<VaultHead> {
  const { couch, backup, entry, target, signal, progress } = ask;
  const database = openDatabase(couch, target);
  await closeEmpty(couch, database);
  try {
    await database.put(MARK_ID, { backup });
    const head = await readHead(backup, entry);
    let done = 0;
    for await (const batch of batches(readLeaves(backup, entry))) {
      await database.write(batch, { asTheyAre: true, signal });
      done += batch.length;
      progress(
        `vault ${target}`,
        Math.min(1, done / Math.max(1, entry.leaves)),
      );
    }
    for (const { _id, ...content } of head.locals) {
      await database.put(_id, content);
    }
    await needSame(database, entry, signal);
    await database.secure(isScratch(target) ? closedRules : head.security);
    await removeMark(couch, target);
    return head;
  } catch (error) {
    await database.drop();
    throw error;
  }
}

/**
 * Makes a database that devices cannot write to. It was empty when the restore began, and that may be long ago: what has been
 * written since stays, and the restore is given up.
 */
async function closeEmpty(couch: Couch, database: Database): Promise<void> {
  if ((await database.info()) === undefined) {
    await database.create();
  }
  const rules = await database.security();
  await database.secure(closedRules);
  try {
    await needEmpty(couch, database.name);
  } catch (error) {
    await database.secure(rules);
    throw error;
  }
}

async function* batches(
  lines: AsyncIterable<string>,
): AsyncGenerator<readonly CouchDocument[]> {
  let batch: CouchDocument[] = [];
  let bytes = 0;
  for await (const line of lines) {
    if (
      batch.length === BATCH_DOCUMENTS ||
      (batch.length > 0 && bytes + line.length > BATCH_BYTES)
    ) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(parseDocument(line));
    bytes += line.length;
  }
  if (batch.length > 0) {
    yield batch;
  }
}

async function needSame(
  database: Database,
  entry: VaultEntry,
  signal: AbortSignal,
): Promise<void> {
  const { documents, leaves } = await countAll(database, signal);
  const short = entry.missing.length;
  if (documents < entry.documents - short || leaves < entry.leaves - short) {
    throw new Failure(
      `vault ${database.name} has ${documents} documents with ${leaves} revisions after the restore, the backup has ${entry.documents} with ${entry.leaves}: it was dropped again; try another backup.`,
    );
  }
}

const PAGE_ROWS = 1000;

/** Documents and leaves of a database, deleted ones too. */
export async function countAll(
  database: Database,
  signal: AbortSignal,
): Promise<{ readonly documents: number; readonly leaves: number }> {
  let since = "0";
  let documents = 0;
  let leaves = 0;
  for (;;) {
    const { results, last_seq } = await database.changes({
      since,
      limit: PAGE_ROWS,
      allLeaves: true,
      signal,
    });
    documents += results.length;
    for (const { changes } of results) {
      leaves += changes.length;
    }
    since = last_seq;
    if (results.length < PAGE_ROWS) {
      return { documents, leaves };
    }
  }
}

async function removeMark(couch: Couch, vault: string): Promise<void> {
  const database = openDatabase(couch, vault);
  const mark = await database.document(MARK_ID);
  if (mark !== undefined) {
    await couch.ask(
      "DELETE",
      `/${encodeURIComponent(vault)}/${MARK_ID}?rev=${mark._rev}`,
    );
  }
}

/** From now on the vault is watched as it is: its seed is the accepted one, its user the one who may in. */
async function register(
  { couch, state, escrow, now }: RestoreAsk,
  vault: string,
  head: VaultHead,
): Promise<void> {
  const info = await openDatabase(couch, vault).info();
  const instance = info?.instance_start_time ?? null;
  state.change(vault, {
    instance,
    member: memberOf(head.security),
    deletionsSince: null,
    deletions: [],
  });
  const seed = seedOf(head.locals.find(({ _id }) => _id === SEED_ID));
  if (seed !== undefined && instance !== null) {
    escrow.write(accepting(escrow.read(vault), seed, instance, now()));
  }
}

/** The user of a vault whose rules are those of `hearth notes add`. */
export function memberOf(security: Security): string | null {
  const [user] = security.members.names;
  return user !== undefined && sameRules(security, memberRules(user))
    ? user
    : null;
}

/**
 * Drops what a supervisor that was killed left half restored, and its scratch databases; gives their names. What is `busy` is
 * being filled now.
 */
export async function dropUnfinished(
  couch: Couch,
  busy: ReadonlySet<string>,
): Promise<readonly string[]> {
  const dropped: string[] = [];
  for (const name of await vaultNames(couch)) {
    const database = openDatabase(couch, name);
    if (busy.has(name) || (await database.document(MARK_ID)) === undefined) {
      continue;
    }
    await database.drop();
    dropped.push(name);
  }
  const all = asExpected(
    z.array(z.string()),
    await couch.ask("GET", "/_all_dbs"),
  );
  for (const name of all.filter((each) => isScratch(each) && !busy.has(each))) {
    await openDatabase(couch, name).drop();
  }
  return dropped;
}
