import { Refusal } from "../refusal.ts";
import { json, type Answer } from "./answer.ts";
import { AFTER_CHUNKS, FIRST_CHUNK, notesSequence } from "./held-versions.ts";
import type { StoreRequest } from "./protocol.ts";
import { bodyObject } from "./query.ts";
import { isOwnToken } from "./sequence.ts";
import { breather, inTransaction, type Store } from "./store.ts";

/** Chunks removed per transaction; other writes run in between. */
const CHUNKS_PER_STEP = 100;

/** The chunks that may be removed. */
interface CollectOptions {
  /** The newest change of a note that the list below is based on. */
  readonly notesSeq: number;
  /** All chunks that no stored version references. */
  readonly unused: readonly string[];
  /** Unused since then or earlier; milliseconds since 1970. */
  readonly before: number;
  /** Sequence up to which every device has read the changes. */
  readonly readUpTo: number;
  /** Whether to remove them; otherwise they are only counted. */
  readonly free: boolean;
}

interface Sum {
  readonly count: number;
  readonly bytes: number;
}

interface Due {
  readonly number: number;
  readonly id: string;
}

/**
 * Records since when chunks are unused and, on request, removes those that were unused for long enough and that every device
 * has read past. The caller lists the unused chunks, since it may have the passphrase. A note written meanwhile could
 * reference one of them: 409.
 */
export async function collect(
  store: Store,
  request: StoreRequest,
): Promise<Answer> {
  const options = readOptions(request);
  await inTransaction(store, async () => {
    checkNotes(store, options);
    await mark(store, options.unused);
  });
  const found = {
    unused: sumOf(store, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
    old: sumOf(store, options.before, Number.MAX_SAFE_INTEGER),
    due: sumOf(store, options.before, options.readUpTo),
  };
  let freed: Sum = { count: 0, bytes: 0 };
  while (options.free && !store.closing) {
    const step = await inTransaction(store, () => removeSome(store, options));
    freed = {
      count: freed.count + step.count,
      bytes: freed.bytes + step.bytes,
    };
    if (step.count < CHUNKS_PER_STEP) {
      break;
    }
  }
  return json(200, { ...found, freed });
}

function readOptions(request: StoreRequest): CollectOptions {
  const { notesSeq, unused, before, readUpTo, free } = bodyObject(request.body);
  if (
    !isCount(notesSeq) ||
    !isCount(before) ||
    !isCount(readUpTo) ||
    typeof free !== "boolean" ||
    !Array.isArray(unused) ||
    !unused.every(isChunkId)
  ) {
    throw new Refusal(
      "bad_request",
      "The body must be {notesSeq, unused, before, readUpTo, free}, with a list of chunk ids.",
    );
  }
  return { notesSeq, unused, before, readUpTo, free };
}

const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0;

const isChunkId = (value: unknown): value is string =>
  typeof value === "string" && value >= FIRST_CHUNK && value < AFTER_CHUNKS;

function checkNotes(store: Store, { notesSeq }: CollectOptions): void {
  if (notesSequence(store.write) <= notesSeq) {
    return;
  }
  throw new Refusal(
    "conflict",
    "Notes were written meanwhile; read them again.",
  );
}

/** A chunk that was rewritten since counts as unused from now. Call within a transaction. */
async function mark(store: Store, unused: readonly string[]): Promise<void> {
  const { write } = store;
  const breathe = breather();
  const notesSeq = notesSequence(write);
  write.other("UPDATE unused_chunks SET notes_seq = -notes_seq - 1").run();
  for (const id of unused) {
    write
      .other(
        `INSERT INTO unused_chunks
           SELECT d.number, d.seq, ?2, ?3, r.size FROM documents d JOIN revisions r ON r.document = d.number AND r.rev = d.winner
           WHERE d.id = ?1 AND d.deleted = 0 AND d.conflicts = 0 AND r.type = 'leaf'
         ON CONFLICT (document) DO UPDATE SET
           notes_seq = CASE WHEN seq = excluded.seq THEN -notes_seq - 1 ELSE excluded.notes_seq END,
           since = CASE WHEN seq = excluded.seq THEN since ELSE excluded.since END,
           seq = excluded.seq`,
      )
      .run(id, notesSeq, store.transactionTime);
    await breathe();
  }
  // Chunks that a note references again.
  write.other("DELETE FROM unused_chunks WHERE notes_seq < 0").run();
}

const IS_DUE =
  "u.since <= ?1 AND u.notes_seq <= ?2 AND d.number = u.document AND d.seq = u.seq";

function sumOf(store: Store, before: number, readUpTo: number): Sum {
  return store.read
    .other(
      `SELECT COUNT(*) AS count, COALESCE(SUM(u.size), 0) AS bytes FROM unused_chunks u, documents d WHERE ${IS_DUE}`,
    )
    .get(before, readUpTo) as unknown as Sum;
}

/** Removes chunks completely, so that a device that still has one can send it again. Call within a transaction. */
function removeSome(store: Store, options: CollectOptions): Sum {
  checkNotes(store, options);
  const { write, totals } = store;
  const due = write
    .other(
      `SELECT d.number, d.id FROM unused_chunks u, documents d WHERE ${IS_DUE} LIMIT ${CHUNKS_PER_STEP}`,
    )
    .all(options.before, options.readUpTo) as unknown as Due[];
  let bytes = 0;
  for (const { number, id } of due) {
    const dropped = write
      .other("DELETE FROM revisions WHERE document = ? RETURNING size, leaf")
      .all(number) as { size: number; leaf: number }[];
    for (const { size, leaf } of dropped) {
      if (leaf === 1) {
        totals.liveBytes -= size;
      } else {
        totals.staleBytes -= size;
      }
      bytes += size;
    }
    totals.documents -= 1;
    write.other("DELETE FROM history WHERE document = ?").run(number);
    write.other("DELETE FROM unused_chunks WHERE document = ?").run(number);
    write.other("DELETE FROM documents WHERE number = ?").run(number);
    write.other("INSERT OR IGNORE INTO collected_chunks VALUES (?)").run(id);
  }
  return { count: due.length, bytes };
}

/**
 * Handles a request for a missing chunk. If it was collected, another device has reused its own copy and assumes that the
 * server has it. Resetting the devices' checkpoints makes them compare all their documents again.
 */
export function onMissingChunk(store: Store, id: string): void {
  const collected = store.read
    .other("SELECT 1 FROM collected_chunks WHERE id = ?")
    .get(id);
  if (collected === undefined) {
    return;
  }
  inTransaction(store, () => {
    store.write.other("DELETE FROM collected_chunks WHERE id = ?").run(id);
    const locals = store.write
      .other("SELECT id, body FROM local_documents")
      .all() as { id: string; body: Uint8Array }[];
    for (const local of locals) {
      if (isPushCheckpoint(store, local.body)) {
        store.write.dropLocal.run(local.id);
      }
    }
    // On a full disk, the next request retries.
  }).catch(() => undefined);
}

/** A checkpoint has the sequence of its source: of this database when a device pulls, otherwise of the device or of another server. */
function isPushCheckpoint(store: Store, body: Uint8Array): boolean {
  const { replicator, last_seq: last } = JSON.parse(
    `{${Buffer.from(body).toString()}}`,
  ) as { replicator?: unknown; last_seq?: unknown };
  return replicator === "pouchdb" && !isOwnToken(store, last);
}
