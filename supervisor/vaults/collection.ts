import { z } from "zod";
import { DAY_MS } from "../../core/duration.ts";
import { Failure } from "../../core/failure.ts";
import { listOf } from "../../core/json.ts";
import { CouchRefusal, type Couch } from "./couch.ts";
import { asExpected } from "./couch-answers.ts";
import { Database, sequenceNumber } from "./database.ts";
import type { HeldPage, HistorySource } from "./history-source.ts";
import { isEncryptedPath, MILESTONE_ID } from "./livesync.ts";
import type { NoteCipher } from "./note-cipher.ts";
import { CHECKPOINT_PREFIX, readPullCheckpoints } from "./pull-checkpoints.ts";
import { readMilestone } from "./roster.ts";

const part = z.looseObject({ count: z.number(), bytes: z.number() });
const collected = z.looseObject({
  unused: part,
  old: part,
  due: part,
  freed: part,
});

/** The chunks of a vault that no stored version references; see `findUnused`. */
export interface UnusedChunks {
  readonly notesSeq: number;
  readonly unused: readonly string[];
}

/** A device, or a replication checkpoint of a device on the server. */
interface Reader {
  readonly id: string;
  readonly kind: "device" | "checkpoint";
  readonly name: string;
  /** The newest change that it has confirmed. */
  readonly readUpTo: number;
  /** Milliseconds since 1970; null if unknown. */
  readonly lastSeen: number | null;
}

export type Collection = Readonly<z.output<typeof collected>> & {
  /** Readers that have not yet read far enough for all old chunks to be removed; the furthest behind first. */
  readonly waitingFor: readonly Reader[];
  readonly notesSeq: number;
};

export const UNUSED_FOR_DAYS = 30;
const LONG_ANSWER_MS = 300_000;
const CHUNK_PREFIX = "h:";

/** Reads every stored version of every note. Throws if one is unreadable, because it could reference any chunk. */
export async function findUnused(
  source: HistorySource,
  cipher: NoteCipher,
): Promise<UnusedChunks> {
  const { chunkSizes } = await source.space();
  const unused = new Set(
    chunkSizes.map(([id]) => id).filter((id) => id.startsWith(CHUNK_PREFIX)),
  );
  let notesSeq: number | undefined;
  let start: string | null = "";
  while (start !== null) {
    const page = await source.held(start);
    notesSeq ??= page.notesSeq;
    start = page.next;
    for (const row of page.rows) {
      for (const id of await chunksOf(row, cipher)) {
        unused.delete(id);
      }
    }
  }
  return { notesSeq: notesSeq ?? 0, unused: [...unused] };
}

/** The chunks of a version. Both lists count: the encrypted one does not replace the plain one. Throws for an unknown form. */
async function chunksOf(
  row: HeldPage["rows"][number],
  cipher: NoteCipher,
): Promise<readonly string[]> {
  const inside = await cipher.read(row);
  const { path } = row;
  if (
    inside === undefined &&
    typeof path === "string" &&
    isEncryptedPath(path)
  ) {
    throw new Failure(
      `the encrypted note ${row._id} (${row._rev}) has an unknown form, so its chunks are unknown: nothing can be removed.`,
    );
  }
  return [row["children"], inside?.children].flatMap(
    (children) => listOf(children) as readonly string[],
  );
}

/** How far the devices of a vault have read: listed devices and replication checkpoints; the furthest behind first. */
async function readReaders(
  couch: Couch,
  vault: string,
): Promise<readonly Reader[]> {
  const database = new Database(couch, vault);
  const { accepted_nodes: accepted, node_info: nodes } =
    await readMilestone(database);
  const devices = [...new Set([...accepted, ...Object.keys(nodes)])].map(
    (id): Reader => ({
      id,
      kind: "device",
      name: nodes[id]?.device_name || nodes[id]?.vault_name || id,
      readUpTo: sequenceNumber(nodes[id]?.progress ?? "0"),
      lastSeen: nodes[id]?.last_connected ?? null,
    }),
  );
  const checkpoints = (await readPullCheckpoints(database)).map(
    ({ id, readUpTo }): Reader => ({
      id,
      name: id,
      kind: "checkpoint",
      lastSeen: null,
      readUpTo,
    }),
  );
  return [...devices, ...checkpoints].toSorted(
    (a, b) => a.readUpTo - b.readUpTo,
  );
}

/** Counts the chunks that can be removed, and removes them if `free` is set. */
export async function collectChunks(
  couch: Couch,
  vault: string,
  { notesSeq, unused }: UnusedChunks,
  { free, now }: { readonly free: boolean; readonly now: number },
): Promise<Collection> {
  const readers = await readReaders(couch, vault);
  const answer = await couch
    .ask("POST", `/${encodeURIComponent(vault)}/_collect`, {
      timeoutMs: LONG_ANSWER_MS,
      body: {
        notesSeq,
        unused,
        free,
        before: now - UNUSED_FOR_DAYS * DAY_MS,
        readUpTo: Math.min(
          ...readers.map(({ readUpTo }) => readUpTo),
          Number.MAX_SAFE_INTEGER,
        ),
      },
    })
    .catch((error: unknown) => {
      throw error instanceof CouchRefusal && error.code === "conflict"
        ? new Failure(
            `notes of vault ${vault} changed during the collection, so nothing was removed. Run the command again.`,
          )
        : error;
    });
  return {
    ...asExpected(collected, answer),
    notesSeq,
    waitingFor: readers.filter(({ readUpTo }) => readUpTo < notesSeq),
  };
}

/** Removes a retired device or a checkpoint from the list. A device that returns is listed again and reads everything again. */
export async function forgetReader(
  couch: Couch,
  vault: string,
  id: string,
): Promise<void> {
  const found = (await readReaders(couch, vault)).find(
    (reader) => reader.id === id,
  );
  if (found === undefined) {
    throw new Failure(
      `vault ${vault} has no device or checkpoint "${id}". Run \`hearth notes collect ${vault}\` to list them.`,
    );
  }
  const database = new Database(couch, vault);
  if (found.kind === "checkpoint") {
    const document = await database.document(CHECKPOINT_PREFIX + id);
    await database.put(CHECKPOINT_PREFIX + id, {
      _rev: document?._rev,
      _deleted: true,
    });
    return;
  }
  const document = await database.document(MILESTONE_ID);
  const { accepted_nodes: accepted, node_info: nodes } =
    await readMilestone(database);
  const { [id]: _gone, ...rest } = nodes;
  await database.put(MILESTONE_ID, {
    ...document,
    node_info: rest,
    accepted_nodes: accepted.filter((node) => node !== id),
  });
}
