import { z } from "zod";
import { Failure } from "../../core/failure.ts";
import { CouchRefusal, type Couch } from "./couch.ts";
import { asExpected } from "./couch-answers.ts";
import { Database } from "./database.ts";
import { momentText } from "./moment.ts";
import { NOTE_TYPES, SEED_ID, seedOf } from "./livesync.ts";

const summary = z.looseObject({
  from: z.number(),
  now: z.number(),
  versions: z.number(),
  bytes: z.number(),
});
const rows = z.array(
  z.looseObject({
    since: z.number(),
    until: z.number().nullable(),
    /** The store cannot read this version: `doc` has its id and revision only. */
    damaged: z.boolean().optional(),
    doc: z.looseObject({ _id: z.string(), _rev: z.string() }),
  }),
);
const page = z.looseObject({
  at: z.number(),
  rows,
  next: z.string().nullable(),
});
const heldPage = z.looseObject({
  notesSeq: z.number(),
  rows: z.array(z.looseObject({ _id: z.string(), _rev: z.string() })),
  next: z.string().nullable(),
});
const chunkRows = z.looseObject({
  rows: z.array(
    z.looseObject({ _id: z.string(), _rev: z.string(), data: z.string() }),
  ),
});

const part = z.looseObject({ count: z.number(), bytes: z.number() });
const storeSpace = z.looseObject({
  chunkSizes: z.array(z.tuple([z.string(), z.number()])),
  notes: part,
  chunks: part,
  other: part,
  superseded: part,
  history: z.looseObject({ versions: z.number(), bytes: z.number() }),
  file: z.number(),
  free: z.number(),
});

/** Use of a database's space in bytes: each chunk, then totals. */
export type StoreSpace = Readonly<z.output<typeof storeSpace>>;
/** Start of a vault's history (milliseconds since 1970), its size, and the salt of its encryption. */
export type HistorySummary = Pick<
  z.output<typeof summary>,
  "from" | "now" | "versions" | "bytes"
> & { readonly salt: string | null };
/** Notes as of `at`, which can be earlier than requested where the history is thinned. */
type HistoryPage = Readonly<z.output<typeof page>>;
type HistoryRow = HistoryPage["rows"][number];
type ChunkRow = z.output<typeof chunkRows>["rows"][number];

/** Stored versions of documents, without chunks; `notesSeq` is the newest change at the time the page was read. */
export type HeldPage = Readonly<z.output<typeof heldPage>>;

/** Changed notes in their current version, the oldest change first; `next` continues, `more` is true if more are available. */
export interface NoteChanges {
  readonly rows: readonly {
    readonly id: string;
    /** Undefined if the note is deleted. */
    readonly doc: unknown;
  }[];
  readonly next: string;
  readonly more: boolean;
}

/** The history of a vault as stored: encrypted if the vault is. */
export interface HistorySource {
  readonly summary: () => Promise<HistorySummary>;
  readonly space: () => Promise<StoreSpace>;
  readonly notesAt: (at: number, start: string) => Promise<HistoryPage>;
  /** A page of all stored versions, current or not; `start` is the `next` of the previous page. */
  readonly held: (start: string) => Promise<HeldPage>;
  /** All stored versions of one document, the newest first. */
  readonly versions: (document: string) => Promise<readonly HistoryRow[]>;
  /** Changes of notes after `since`, "0" for all; long-polls when there are none. */
  readonly changes: (since: string) => Promise<NoteChanges>;
  /** The existing chunks, including deleted ones still in the history. */
  readonly chunks: (ids: readonly string[]) => Promise<readonly ChunkRow[]>;
  /** Writes new revisions of notes; first restores those of the named chunks that are deleted. */
  readonly write: (
    documents: readonly Readonly<Record<string, unknown>>[],
    chunks: readonly string[],
  ) => Promise<void>;
}

const NOTES_PER_PAGE = 500;
const CHANGES_PER_PAGE = 200;
const WAIT_FOR_CHANGES_MS = 20_000;
/** A permanently deleted note has no type. */
const notesAndDeletions = {
  $or: [{ type: { $in: [...NOTE_TYPES, "notes"] } }, { _deleted: true }],
};
const NOTE_FIELDS = [
  "_id",
  "_rev",
  "_deleted",
  "type",
  "path",
  "mtime",
  "ctime",
  "size",
  "children",
  "eden",
  "deleted",
  "data",
];
/** The plugin's largest chunk has 6.2 MB, 11.1 MB once it is encrypted; a command accepts answers of 64 MB. */
export const CHUNKS_PER_REQUEST = 4;
const IDS_PER_REQUEST = 1000;
const LONG_ANSWER_MS = 300_000;

/** The history of the embedded store. CouchDB has none: with it, calls throw `NoHistory`. */
export function openHistory(couch: Couch, vault: string): HistorySource {
  const database = new Database(couch, vault);
  const path = `/${encodeURIComponent(vault)}`;
  const request = async (from: string, body?: unknown) =>
    couch
      .ask(body === undefined ? "GET" : "POST", path + from, {
        timeoutMs: LONG_ANSWER_MS,
        ...(body === undefined ? {} : { body }),
      })
      .catch((error: unknown) => {
        throw inWords(error, vault);
      });
  const ask = async (query: Readonly<Record<string, string>>, body?: unknown) =>
    request(`/_history?${new URLSearchParams(query).toString()}`, body);
  const chunks: HistorySource["chunks"] = async (ids) =>
    asExpected(chunkRows, await ask({}, { chunks: ids })).rows;
  return {
    summary: async () => {
      const { from, now, versions, bytes } = asExpected(summary, await ask({}));
      const seed = seedOf(await database.document(SEED_ID));
      return { from, now, versions, bytes, salt: seed?.pbkdf2salt ?? null };
    },
    space: async () => asExpected(storeSpace, await request("/_space")),
    notesAt: async (at, startkey) =>
      asExpected(
        page,
        await ask({ at: String(at), startkey, limit: String(NOTES_PER_PAGE) }),
      ),
    held: async (start) => asExpected(heldPage, await ask({ held: start })),
    versions: async (id) =>
      asExpected(z.looseObject({ rows }), await ask({ id })).rows,
    changes: async (since) => changesAfter(database, since),
    chunks,
    write: async (documents, ids) => {
      await restoreChunks(database, ids, chunks);
      await database.write(documents);
    },
  };
}

async function changesAfter(
  database: Database,
  since: string,
): Promise<NoteChanges> {
  const { results, last_seq, pending } = await database.changes({
    since,
    limit: CHANGES_PER_PAGE,
    longpollMs: WAIT_FOR_CHANGES_MS,
    selector: notesAndDeletions,
    fields: NOTE_FIELDS,
  });
  return {
    rows: results.map(({ id, deleted, doc }) => ({
      id,
      doc: deleted === true ? undefined : doc,
    })),
    next: last_seq,
    more: pending > 0,
  };
}

/** Writes those of the chunks again that are deleted. */
async function restoreChunks(
  database: Database,
  ids: readonly string[],
  read: HistorySource["chunks"],
): Promise<void> {
  for (let at = 0; at < ids.length; at += IDS_PER_REQUEST) {
    const some = ids.slice(at, at + IDS_PER_REQUEST);
    const live = new Set(await database.live(some));
    const gone = some.filter((id) => !live.has(id));
    for (let from = 0; from < gone.length; from += CHUNKS_PER_REQUEST) {
      const found = await read(gone.slice(from, from + CHUNKS_PER_REQUEST));
      await database.write(found.map(({ _rev: _gone, ...chunk }) => chunk));
    }
  }
}

/** The store has no history: it is a CouchDB. */
export class NoHistory extends Failure {}

function inWords(error: unknown, vault: string): unknown {
  if (!(error instanceof CouchRefusal)) {
    return error;
  }
  const [, start] =
    /^The history goes back to (\S+Z)\.$/.exec(error.reason) ?? [];
  if (start !== undefined) {
    return new Failure(
      `the history of vault ${vault} starts at ${momentText(Date.parse(start))}. Choose a later time.`,
    );
  }
  // CouchDB interprets the paths as document ids: 404, or 400 for ids that it reserves.
  return error.status === 404 || error.code === "illegal_docid"
    ? new NoHistory(
        `no history of vault ${vault}: only the embedded notes store keeps one, not CouchDB.`,
      )
    : error;
}
