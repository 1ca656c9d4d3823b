import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { isFullDisk } from "../../core/failure.ts";
import { fullDisk, storageFailureOf } from "../refusal.ts";
import { sumColumn } from "./checksum.ts";
import { keepReserve, RESERVE_BYTES } from "./disk-reserve.ts";
import type {
  FromWorker,
  PublicState,
  SecurityObject,
  WorkerData,
} from "./protocol.ts";
import type { RevisionTree } from "./revisions.ts";
import { openOnFullDisk, openReader, openWriter } from "./schema.ts";

/** A row of `documents`. */
export interface DocumentRow {
  readonly number: number;
  readonly id: string;
  readonly seq: number;
  readonly winner: string;
  readonly deleted: number;
  readonly conflicts: number;
  readonly tree: string;
}

/** The counters of a database; written with every transaction. */
interface Totals {
  updateSeq: number;
  documents: number;
  deleted: number;
  liveBytes: number;
  staleBytes: number;
}

/** Settings of a database. */
interface StoreSettings {
  readonly security: SecurityObject;
  readonly revsLimit: number;
}

/** One open database, as its worker thread sees it. */
export interface Store {
  readonly name: string;
  readonly kind: WorkerData["kind"];
  readonly file: string;
  readonly instanceId: string;
  readonly instanceStartTime: string;
  readonly passwordIterations: number;
  writer: DatabaseSync;
  reader: DatabaseSync;
  write: Statements;
  read: Statements;
  /** Opened on a full disk; the next write tries to reopen it for writing. */
  readOnly: boolean;
  readonly totals: Totals;
  readonly notify: (message: FromWorker) => void;
  /** Committed settings, the only ones visible outside the transaction. */
  settings: StoreSettings;
  /** Settings as the running transaction leaves them; applied once it is committed. */
  pendingSettings: StoreSettings;
  compacting: boolean;
  closing: boolean;
  /** Numbers of documents and their revisions whose body was found damaged, and not replaced since: `1 3-abc`. */
  readonly damaged: Set<string>;
  /** The committed update sequence. */
  committedSeq: number;
  /** The start of the running transaction, in milliseconds since 1970. */
  transactionTime: number;
  /** Maximum bytes of past versions. */
  readonly historyMaxBytes: number;
  /** Resolves at the end of the last write: writes run one at a time. */
  lastWrite: Promise<unknown>;
}

export type Statements = ReturnType<typeof prepareStatements>;

export function openStore(
  data: WorkerData,
  notify: (message: FromWorker) => void,
): Store {
  const connections = connect(data.file, data.instanceStartTime);
  const { read } = connections;
  const property = (name: string): string =>
    (read.property.get(name) as { value: string }).value;
  const settings: StoreSettings = {
    security: JSON.parse(property("security")) as SecurityObject,
    revsLimit: Number(property("revs_limit")),
  };
  const totals = readTotals(read);
  return {
    name: data.name,
    kind: data.kind,
    file: data.file,
    instanceId: property("instance_id"),
    instanceStartTime: property("instance_start_time"),
    passwordIterations: data.passwordIterations,
    ...connections,
    totals,
    notify,
    settings,
    pendingSettings: settings,
    compacting: false,
    closing: false,
    damaged: new Set(),
    committedSeq: totals.updateSeq,
    transactionTime: 0,
    historyMaxBytes: data.historyMaxBytes ?? Infinity,
    lastWrite: Promise.resolve(),
  };
}

type Connections = Pick<
  Store,
  "writer" | "reader" | "write" | "read" | "readOnly"
>;

/** On a full disk an existing file can still be read. */
function connect(file: string, instanceStartTime: string): Connections {
  let writer: DatabaseSync | undefined;
  try {
    writer = openWriter(file, instanceStartTime);
    return connectionsOf(writer, openReader(file));
  } catch (failure) {
    writer?.close();
    if (!isFullDisk(failure) || !existsSync(file)) {
      throw failure;
    }
    const only = openOnFullDisk(file);
    return connectionsOf(only, only);
  }
}

function connectionsOf(
  writer: DatabaseSync,
  reader: DatabaseSync,
): Connections {
  return {
    writer,
    reader,
    write: prepareStatements(writer),
    read: prepareStatements(reader),
    readOnly: writer === reader,
  };
}

export function disconnect(store: Store): void {
  if (!store.readOnly) {
    store.reader.close();
  }
  // Closing the last connection writes the log back into the file.
  store.writer.close();
}

/** Reopens the file for writing once the disk has space. Throws while it is full. */
function leaveReadOnly(store: Store): void {
  disconnect(store);
  Object.assign(store, connect(store.file, store.instanceStartTime));
  if (store.readOnly) {
    throw fullDisk();
  }
}

/** Throws where the disk is too full for the reserve. A small file can be compacted without one. */
function checkReserve(store: Store): void {
  const { size } = statSync(store.file);
  if (size > RESERVE_BYTES && !keepReserve(reserveOf(store))) {
    throw fullDisk();
  }
}

export function reserveOf(store: Store): string {
  return join(dirname(store.file), "reserve");
}

/** Reports a failure that no caller waits for. */
export function reportFailure(
  store: Store,
  reason: string,
  failure: unknown,
): void {
  store.notify({
    kind: "refused",
    call: 0,
    code: "internal_error",
    reason,
    detail: String(failure),
    storageFailure: storageFailureOf(failure),
  });
}

/** The committed state: a running transaction may still fail. */
export function publicState(store: Store): PublicState {
  return {
    updateSeq: store.committedSeq,
    security: store.settings.security,
    instanceStartTime: store.instanceStartTime,
    compacting: store.compacting,
  };
}

/** Runs `change` exclusively and in one transaction, then notifies the main thread. Its writes are on disk when the promise resolves. */
export async function inTransaction<T>(
  store: Store,
  change: () => T | Promise<T>,
): Promise<T> {
  return await exclusively(store, async () => {
    checkReserve(store);
    return await transact(store, change);
  });
}

/** Like `inTransaction`, for changes that free space: on a full disk they use the reserve. */
export async function inReserve<T>(
  store: Store,
  change: () => T | Promise<T>,
): Promise<T> {
  return await exclusively(store, async () => await transact(store, change));
}

async function transact<T>(
  store: Store,
  change: () => T | Promise<T>,
): Promise<T> {
  if (store.readOnly) {
    leaveReadOnly(store);
  }
  const before = { ...store.totals };
  store.pendingSettings = store.settings;
  store.transactionTime = Date.now();
  let result: T;
  try {
    result = await atomically(store, async () => {
      const changed = await change();
      const { updateSeq, documents, deleted, liveBytes, staleBytes } =
        store.totals;
      store.write
        .other(PUT_TOTALS)
        .run(updateSeq, documents, deleted, liveBytes, staleBytes);
      return changed;
    });
  } catch (failure) {
    Object.assign(store.totals, before);
    throw failure;
  }
  store.settings = store.pendingSettings;
  store.committedSeq = store.totals.updateSeq;
  store.notify({ kind: "state", state: publicState(store) });
  return result;
}

/** Runs `work` in one transaction of the file. Call exclusively. */
export async function atomically<T>(
  { writer }: Store,
  work: () => T | Promise<T>,
): Promise<T> {
  writer.exec("BEGIN IMMEDIATE");
  try {
    const result = await work();
    writer.exec("COMMIT");
    return result;
  } catch (failure) {
    if (writer.isTransaction) {
      writer.exec("ROLLBACK");
    }
    throw failure;
  }
}

/** Runs `work` after all earlier writes. */
export async function exclusively<T>(
  store: Store,
  work: () => Promise<T>,
): Promise<T> {
  const mine = store.lastWrite.then(work);
  store.lastWrite = mine.catch(() => undefined);
  return await mine;
}

/** Yields to other requests of this database once the current one has run for some milliseconds. */
export function breather(): () => Promise<void> {
  const SLICE_MS = 8;
  let since = performance.now();
  return async () => {
    if (performance.now() - since < SLICE_MS) {
      return;
    }
    await nextTurn();
    since = performance.now();
  };
}

export function treeOf(row: DocumentRow): RevisionTree {
  return JSON.parse(row.tree) as RevisionTree;
}

function readTotals(read: Statements): Totals {
  const row = read.totals.get() as Record<string, number>;
  return {
    updateSeq: row.update_seq!,
    documents: row.documents!,
    deleted: row.deleted!,
    liveBytes: row.live_bytes!,
    staleBytes: row.stale_bytes!,
  };
}

/** Prepared with the first write: a file that a full disk left without a history has no such column. */
const PUT_TOTALS =
  "UPDATE totals SET update_seq = ?1, recorded_seq = ?1, documents = ?2, deleted = ?3, live_bytes = ?4, stale_bytes = ?5";

function prepareStatements(database: DatabaseSync) {
  const lazily = new Map<string, StatementSync>();
  const sum = sumColumn(database);
  return {
    /** The checksum of a body, in a SELECT. */
    sum,
    property: database.prepare("SELECT value FROM properties WHERE name = ?"),
    putProperty: database.prepare(
      "UPDATE properties SET value = ?2 WHERE name = ?1",
    ),
    totals: database.prepare("SELECT * FROM totals"),
    document: database.prepare("SELECT * FROM documents WHERE id = ?"),
    /** The number that a new document gets. */
    nextNumber: database.prepare(
      "SELECT COALESCE(MAX(number), 0) + 1 AS number FROM documents",
    ),
    insertDocument: database.prepare(
      "INSERT INTO documents (number, id, seq, winner, deleted, conflicts, tree) VALUES (?, ?, ?, ?, ?, ?, ?)",
    ),
    updateDocument: database.prepare(
      "UPDATE documents SET seq = ?2, winner = ?3, deleted = ?4, conflicts = ?5, tree = ?6 WHERE number = ?1",
    ),
    revision: database.prepare(
      "SELECT deleted, type, size FROM revisions WHERE document = ? AND rev = ?",
    ),
    body: database.prepare(
      `SELECT body, ${sum} FROM revisions WHERE document = ? AND rev = ?`,
    ),
    retireRevision: database.prepare(
      "UPDATE revisions SET leaf = 0 WHERE document = ? AND rev = ? AND leaf = 1 RETURNING size, type, deleted",
    ),
    dropRevision: database.prepare(
      "DELETE FROM revisions WHERE document = ? AND rev = ? RETURNING size, leaf",
    ),
    local: database.prepare(
      "SELECT id, rev, body FROM local_documents WHERE id = ?",
    ),
    putLocal: database.prepare(
      "INSERT INTO local_documents VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET rev = excluded.rev, body = excluded.body",
    ),
    dropLocal: database.prepare("DELETE FROM local_documents WHERE id = ?"),
    /** Any other statement, prepared at its first use. */
    other: (sql: string): StatementSync => {
      const known = lazily.get(sql);
      if (known !== undefined) {
        return known;
      }
      const statement = database.prepare(sql);
      lazily.set(sql, statement);
      return statement;
    },
  };
}
