import { z } from "zod";
import { Failure } from "../../core/failure.ts";
import { CouchRefusal, type Couch } from "./couch.ts";
import { asExpected, openDatabase, sequenceNumber } from "./database.ts";
import type { HistorySource } from "./history-source.ts";
import { MILESTONE_ID } from "./livesync.ts";
import type { NoteCipher } from "./note-cipher.ts";
import { readMilestone } from "./roster.ts";

const part = z.looseObject({ count: z.number(), bytes: z.number() });
const collected = z.looseObject({
  unused: part,
  old: part,
  due: part,
  freed: part,
});
const localRows = z.looseObject({
  rows: z.array(z.looseObject({ id: z.string(), doc: z.unknown() })),
});
const pullCheckpoint = z.looseObject({
  replicator: z.literal("pouchdb"),
  // A device's own sequences are numbers, the store's are texts.
  last_seq: z.string(),
});

/** The chunks of a vault that no version in the store names; see `findUnused`. */
export interface UnusedChunks {
  readonly notesSeq: number;
  readonly unused: readonly string[];
}

/** A device, or what a device keeps on the server about how far it has read. */
export interface Reader {
  readonly id: string;
  readonly kind: "device" | "checkpoint";
  readonly name: string;
  /** The newest change it is known to have read. */
  readonly readUpTo: number;
  /** Milliseconds since 1970; null where that is not known. */
  readonly lastSeen: number | null;
}

export type Collection = Readonly<z.output<typeof collected>> & {
  /** Who has to read further before everything that is old enough can go; the furthest behind first. */
  readonly waitingFor: readonly Reader[];
  readonly notesSeq: number;
};

export const UNUSED_FOR_DAYS = 30;
const DAY_MS = 86_400_000;
const LONG_ANSWER_MS = 300_000;
const CHUNK_PREFIX = "h:";
const CHECKPOINT_PREFIX = "_local/";

/** Looks through every version of every note that the store holds. Throws where one cannot be read: it could name any chunk. */
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
      // Both lists count: what is inside an encryption does not replace what stands outside.
      const inside = await cipher.read(row);
      for (const children of [row["children"], inside?.children]) {
        if (Array.isArray(children)) {
          for (const id of children as readonly string[]) {
            unused.delete(id);
          }
        }
      }
    }
  }
  return { notesSeq: notesSeq ?? 0, unused: [...unused] };
}

/** How far the devices of a vault have read: those it lists, and every checkpoint of a replication. */
export async function readReaders(
  couch: Couch,
  vault: string,
): Promise<readonly Reader[]> {
  const database = openDatabase(couch, vault);
  const { accepted_nodes: accepted, node_info: nodes } =
    await readMilestone(database);
  const { rows } = asExpected(
    localRows,
    await couch.ask(
      "GET",
      `/${encodeURIComponent(vault)}/_local_docs?include_docs=true`,
    ),
  );
  const devices = [...new Set([...accepted, ...Object.keys(nodes)])].map(
    (id): Reader => ({
      id,
      kind: "device",
      name: nodes[id]?.device_name || nodes[id]?.vault_name || id,
      readUpTo: sequenceNumber(nodes[id]?.progress ?? "0"),
      lastSeen: nodes[id]?.last_connected ?? null,
    }),
  );
  const checkpoints = rows.flatMap(({ id, doc }): readonly Reader[] => {
    const { success, data } = pullCheckpoint.safeParse(doc);
    if (!success) {
      return [];
    }
    const name = id.slice(CHECKPOINT_PREFIX.length);
    return [
      {
        id: name,
        name,
        kind: "checkpoint",
        lastSeen: null,
        readUpTo: sequenceNumber(data.last_seq),
      },
    ];
  });
  return [...devices, ...checkpoints].toSorted(
    (a, b) => a.readUpTo - b.readUpTo,
  );
}

/** Counts what can go, and removes it if `free` says so. */
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
            `notes of vault ${vault} were written meanwhile, so nothing was freed: run the command again.`,
          )
        : error;
    });
  return {
    ...asExpected(collected, answer),
    notesSeq,
    waitingFor: readers.filter(({ readUpTo }) => readUpTo < notesSeq),
  };
}

/** Forgets a device that is no more, or a checkpoint. If it comes back, it is listed again, and reads everything once more. */
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
      `vault ${vault} knows no device or checkpoint "${id}": \`hearth notes collect ${vault}\` lists those it waits for.`,
    );
  }
  const database = openDatabase(couch, vault);
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
