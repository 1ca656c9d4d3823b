import { basename } from "node:path";
import { z } from "zod";
import { verifyFiles } from "../backup/backup-files.ts";
import { Failure } from "../../core/failure.ts";
import { sum } from "../../core/sum.ts";
import {
  closedRules,
  memberOf,
  memberRules,
  sameRules,
} from "./access-rules.ts";
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
  isEmbedded,
  isScratch,
  Database,
  vaultNames,
  type CouchDocument,
  type Security,
} from "./database.ts";
import { SEED_ID, seedOf, type Seed } from "./livesync.ts";
import type { NotesState } from "./notes-state.ts";
import {
  accepting,
  acceptedSeed,
  readableEscrow,
  type EscrowFiles,
} from "./seed-escrow.ts";
import { asUnreadable, unreadableWords } from "./unreadable-vault.ts";
import { hasPassword, openUsers } from "./users.ts";
import type { VaultFiles } from "./vault-file.ts";
import { checkVaultName } from "./vault-names.ts";

interface RestoreOptions {
  readonly couch: Couch;
  /** One backup: `backups/notes/<name>`. */
  readonly backup: string;
  /** Only this vault; defaults to all of the backup. */
  readonly vault?: string | undefined;
  /** Another name for that vault, which leaves the existing one untouched. */
  readonly as?: string | undefined;
  readonly state: NotesState;
  readonly escrow: EscrowFiles;
  readonly files: VaultFiles;
  /** Contains the names of the vaults that are being restored. */
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
  /** Design documents of a CouchDB, which the embedded store does not support. */
  readonly leftOut: number;
  /** Restored from the same backup before, and left as it is. */
  readonly already: boolean;
}

const BATCH_BYTES = 4_000_000;
const BATCH_DOCUMENTS = 200;

/**
 * Restores vaults of a backup into databases that are missing or empty. Devices get access when a vault is complete; an
 * interrupted one is dropped, by the next restore at the latest. Throws a Failure before any change if a vault exists, unless it
 * was restored from this backup: an interrupted restore is continued.
 */
export async function restoreNotes(
  options: RestoreOptions,
): Promise<readonly RestoredVault[]> {
  const { couch, escrow, busy } = options;
  const manifest = readNotesManifest(options.backup);
  const plan = planOf(options, manifest);
  const complete = new Set<string>();
  for (const { target } of plan) {
    await dropIfUnfinished(couch, target, busy);
    if (await isComplete(options, target)) {
      complete.add(target);
    } else {
      await requireEmpty(couch, target);
      // A damaged copy is reported before the vault is filled.
      escrow.read(target);
    }
  }
  await verifyPlan(options, plan);
  await restoreUsers(options, undefined);
  const restored: RestoredVault[] = [];
  for (const { entry, target } of plan) {
    busy.add(target);
    try {
      const already = complete.has(target);
      const leftOut = already
        ? 0
        : await restoreVault({
            ...options,
            entry,
            target,
            filled: async (head) => {
              const member = await userOf(options, entry.name, head);
              await register(options, target, head, member);
              if (target === entry.name) {
                await restoreUsers(options, member ?? undefined);
              }
              return member === null ? head.security : memberRules(member);
            },
          });
      restored.push({
        vault: target,
        from: entry.name,
        documents: entry.documents - leftOut,
        leaves: entry.leaves - leftOut,
        leftOut,
        already,
      });
    } finally {
      busy.delete(target);
    }
  }
  return restored;
}

/** Whether an earlier restore of the same backup has completed the vault. */
async function isComplete(
  { couch, state, backup }: RestoreOptions,
  target: string,
): Promise<boolean> {
  const { restoredFrom, instance } = state.vault(target);
  if (restoredFrom !== basename(backup)) {
    return false;
  }
  const info = await new Database(couch, target).info().catch(asUnreadable);
  return typeof info === "object" && info.instance_start_time === instance;
}

interface PlannedVault {
  readonly entry: VaultEntry;
  readonly target: string;
}

function planOf(
  { backup, vault, as }: RestoreOptions,
  { vaults }: NotesManifest,
): readonly PlannedVault[] {
  const names = vaults.map(({ name }) => name).join(", ");
  if (vault === undefined && as !== undefined && vaults.length !== 1) {
    throw new Failure(
      `the backup contains ${vaults.length} vaults (${names}): choose one with --vault.`,
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

/** Reads the files that the restore needs: a damaged one of another vault does not matter. */
async function verifyPlan(
  { backup, signal, progress }: RestoreOptions,
  plan: readonly PlannedVault[],
): Promise<void> {
  await verifyFiles(backup, signal, progress, new Set([USERS_FILE]));
  for (const { entry } of plan) {
    const parts = entry.parts.map((part) => part.file);
    const names = new Set([entry.file, ...parts]);
    try {
      await verifyFiles(backup, signal, progress, names);
    } catch (error) {
      if (!(error instanceof Failure)) {
        throw error;
      }
      throw new Failure([
        `vault "${entry.name}" cannot be restored.`,
        ...error.sentences,
        ...(plan.length > 1
          ? ["Restore the other vaults one by one with --vault NAME."]
          : []),
      ]);
    }
  }
}

async function requireEmpty(couch: Couch, target: string): Promise<void> {
  const info = await new Database(couch, target).info().catch(asUnreadable);
  if (typeof info === "string") {
    throw new Failure(unreadableWords(target, info));
  }
  if (info === undefined || info.doc_count + info.doc_del_count === 0) {
    return;
  }
  throw new Failure(
    `vault "${target}" already exists with ${info.doc_count} documents, and a restore never overwrites: restore to another name with --as ${target}-restored, or remove it first with \`hearth notes remove ${target}\`.`,
  );
}

/**
 * Restores missing users. The user of a vault that was restored under its own name gets its old password even if a user of
 * that name exists (created for the empty vault): the devices have the old password. One that was replaced since stays revoked.
 */
async function restoreUsers(
  { couch, backup, files, now }: RestoreOptions,
  of: string | undefined,
): Promise<void> {
  const users = openUsers(couch);
  for await (const line of readLines(backup, USERS_FILE)) {
    const document = parseDocument(line);
    if (of !== undefined && document["name"] !== of) {
      continue;
    }
    if (of === undefined) {
      await users.putBack(document, false);
      continue;
    }
    const found = await files.putBack(
      of,
      (password) => hasPassword(document, password),
      now(),
    );
    if (found?.isRotated === true) {
      await users.save(of, found.file.password);
    } else if ((await users.putBack(document, true)) && found === undefined) {
      // The password in the file is no longer valid.
      files.remove(of, now());
    }
  }
}

/**
 * Fills one database from a backup, marked as incomplete and closed to devices until it is complete. `filled` is called just
 * before, and returns its access rules; without it, the database stays closed. Returns the number of documents that the server
 * does not support.
 */
export async function restoreVault(
  options: Pick<RestoreOptions, "couch" | "backup" | "signal" | "progress"> & {
    readonly entry: VaultEntry;
    readonly target: string;
    readonly filled?: (head: VaultHead) => Promise<Security>;
  },
): Promise<number> {
  const { couch, backup, entry, target, signal, progress } = options;
  const database = new Database(couch, target);
  const isSupported = await supportedBy(couch);
  await closeEmpty(couch, database);
  try {
    await database.secure(closedRules, { restoring: true });
    const head = await readHead(backup, entry);
    let done = 0;
    let leftOut = 0;
    for await (const batch of batches(readLeaves(backup, entry))) {
      const kept = batch.filter(isSupported);
      await database.write(kept, { keepRevisions: true, signal });
      leftOut += batch.length - kept.length;
      done += batch.length;
      progress(
        `vault ${target}`,
        Math.min(1, done / Math.max(1, entry.leaves)),
      );
    }
    for (const { _id, ...content } of head.locals) {
      await database.put(_id, content);
    }
    await requireSameCounts(database, entry, leftOut, signal);
    const rules = await options.filled?.(head);
    await database.secure(rules ?? closedRules);
    return leftOut;
  } catch (error) {
    await database.drop();
    throw error;
  }
}

/** Whether a server can store a document: the embedded store has no design documents, not even deleted ones. */
export async function supportedBy(
  couch: Couch,
): Promise<(document: CouchDocument) => boolean> {
  const embedded = await isEmbedded(couch);
  return ({ _id }) => !embedded || !_id.startsWith("_design/");
}

/**
 * Creates a database that devices cannot write to. It was empty at the start of the restore, which may be long ago: if
 * anything was written since, it is kept and the restore fails.
 */
async function closeEmpty(couch: Couch, database: Database): Promise<void> {
  if ((await database.info()) === undefined) {
    await database.create();
  }
  const rules = await database.security();
  await database.secure(closedRules);
  try {
    await requireEmpty(couch, database.name);
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

async function requireSameCounts(
  database: Database,
  entry: VaultEntry,
  leftOut: number,
  signal: AbortSignal,
): Promise<void> {
  const { documents, leaves } = await countAll(database, signal);
  const short = entry.missing.length + leftOut;
  if (documents < entry.documents - short || leaves < entry.leaves - short) {
    throw new Failure(
      `vault ${database.name} has ${documents} documents with ${leaves} revisions after the restore, the backup has ${entry.documents} with ${entry.leaves}: the restored vault was dropped; try another backup.`,
    );
  }
}

/** Counts documents and leaves of a database, including deleted ones. */
export async function countAll(
  database: Database,
  signal: AbortSignal,
): Promise<{ readonly documents: number; readonly leaves: number }> {
  let documents = 0;
  let leaves = 0;
  const pages = database.changePages({
    since: "0",
    allLeaves: true,
    signal,
  });
  for await (const { results } of pages) {
    documents += results.length;
    leaves += sum(results.map(({ changes }) => changes.length));
  }
  return { documents, leaves };
}

/**
 * The user of a vault of a backup. Backups of earlier releases contain the closed rules of a vault whose access was blocked
 * because its seed changed: then the one recorded here, or on a new machine the user of the vault's name.
 */
async function userOf(
  { backup, state }: RestoreOptions,
  vault: string,
  { security, locals }: VaultHead,
): Promise<string | null> {
  const user = memberOf(security);
  const isBlocked =
    sameRules(security, closedRules) &&
    locals.some(({ _id }) => _id === SEED_ID);
  if (user !== null || !isBlocked) {
    return user;
  }
  const { member } = state.vault(vault);
  if (member !== null) {
    return member;
  }
  for await (const line of readLines(backup, USERS_FILE)) {
    if (parseDocument(line)["name"] === vault) {
      return vault;
    }
  }
  return null;
}

/** Registers the restored vault: accepts its seed, and records its user as the member, and that it is complete. */
async function register(
  { couch, state, escrow, backup, now }: RestoreOptions,
  vault: string,
  head: VaultHead,
  member: string | null,
): Promise<void> {
  const database = new Database(couch, vault);
  const info = await database.info();
  const instance = info?.instance_start_time ?? null;
  state.change(vault, {
    instance,
    restoredFrom: basename(backup),
    member,
    deletionsSince: null,
    deletions: [],
  });
  const original = seedBeforeBlock(escrow, head);
  if (original !== undefined) {
    await database.put(SEED_ID, original);
  }
  const seed =
    original ?? seedOf(head.locals.find(({ _id }) => _id === SEED_ID));
  if (seed !== undefined && instance !== null) {
    escrow.write(accepting(escrow.read(vault), seed, instance, now()));
  }
}

/**
 * The seed that was accepted for the database of a backup that was taken while access was blocked: those of earlier releases
 * contain the seed that it was blocked for. Undefined for other backups.
 */
function seedBeforeBlock(
  escrow: EscrowFiles,
  { vault, instance, security }: VaultHead,
): Seed | undefined {
  const kept = readableEscrow(escrow, vault);
  return sameRules(security, closedRules) && kept?.instance === instance
    ? acceptedSeed(kept)
    : undefined;
}

/**
 * Drops incomplete vaults and scratch databases left by a killed supervisor or store, except `busy` ones, which are being filled now.
 * Returns the names of the vaults.
 */
export async function dropUnfinished(
  couch: Couch,
  busy: ReadonlySet<string>,
): Promise<readonly string[]> {
  const dropped: string[] = [];
  for (const name of await vaultNames(couch)) {
    if (await dropIfUnfinished(couch, name, busy)) {
      dropped.push(name);
    }
  }
  const all = asExpected(
    z.array(z.string()),
    await couch.ask("GET", "/_all_dbs"),
  );
  for (const name of all.filter((each) => isScratch(each) && !busy.has(each))) {
    await new Database(couch, name).drop();
  }
  return dropped;
}

async function dropIfUnfinished(
  couch: Couch,
  name: string,
  busy: ReadonlySet<string>,
): Promise<boolean> {
  const database = new Database(couch, name);
  // A restore may have started, or be complete, by the time of the answer.
  if (busy.has(name) || !(await database.isRestoring()) || busy.has(name)) {
    return false;
  }
  await database.drop();
  return true;
}
