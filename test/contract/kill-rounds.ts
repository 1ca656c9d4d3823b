import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "../wait-for.ts";
import { ask, startNotes, type NotesProcess } from "./start-notes.ts";

/** Acknowledged writes, which the store must never lose. */
interface Acknowledged {
  /** The latest acknowledged revision and content by document id. */
  readonly documents: Map<string, { readonly rev: string; readonly n: number }>;
  /** Replicated revisions, each a separate leaf. */
  readonly replicated: Map<string, string>;
  readonly local: Map<string, { readonly rev: number; readonly n: number }>;
}

interface KillReport {
  readonly rounds: number;
  readonly acknowledged: number;
  readonly lost: readonly string[];
}

/**
 * Kills a store with SIGKILL at a random moment after its first acknowledged write, restarts it and checks every acknowledged write; repeats
 * this `rounds` times on the same data.
 */
export async function killRounds(rounds: number): Promise<KillReport> {
  let notes = await startNotes();
  const acknowledged: Acknowledged = {
    documents: new Map(),
    replicated: new Map(),
    local: new Map(),
  };
  const lost: string[] = [];
  try {
    await ask(`${notes.url}/vault`, { method: "PUT" });
    for (let round = 0; round < rounds; round += 1) {
      const before = countOf(acknowledged);
      const writing = writeUntilKilled(notes, acknowledged, round);
      await waitFor(
        "an acknowledged write",
        () => countOf(acknowledged) > before,
      );
      await sleep(Math.random() * 250);
      await notes.kill("SIGKILL");
      await writing;
      notes = await notes.restart();
      lost.push(...(await findLost(notes, acknowledged)));
      if (lost.length > 0) {
        break;
      }
    }
    return {
      rounds,
      acknowledged: countOf(acknowledged),
      lost,
    };
  } finally {
    await notes.stop();
  }
}

function countOf({ documents, replicated, local }: Acknowledged): number {
  return documents.size + replicated.size + local.size;
}

async function writeUntilKilled(
  notes: NotesProcess,
  acknowledged: Acknowledged,
  round: number,
): Promise<void> {
  const untilKilled = async (
    step: (n: number) => Promise<void>,
  ): Promise<void> => {
    try {
      for (let n = 0; ; n += 1) {
        await step(n);
      }
    } catch {
      // The process has been killed.
    }
  };
  await Promise.all([
    untilKilled((n) => editNote(notes, acknowledged, `note-${n % 7}`)),
    untilKilled((n) => pushChunks(notes, acknowledged, `${round}-${n}`)),
    untilKilled((n) => putCheckpoint(notes, acknowledged, `device-${n % 3}`)),
    untilKilled(async (n) => {
      if (n % 5 === 4) {
        await ask(`${notes.url}/vault/_compact`, { json: {} });
      }
      await sleep(10);
    }),
  ]);
}

async function editNote(
  notes: NotesProcess,
  { documents }: Acknowledged,
  id: string,
): Promise<void> {
  const known = documents.get(id);
  const url = `${notes.url}/vault/${id}`;
  const n = (known?.n ?? 0) + 1;
  const edit = async (rev: string | undefined): Promise<Response> =>
    await ask(url, {
      method: "PUT",
      json: { ...(rev === undefined ? {} : { _rev: rev }), n, type: "plain" },
    });
  let answer = await edit(known?.rev);
  if (answer.status === 409) {
    // An earlier edit was stored, but its response was lost.
    const stored = (await (await ask(url)).json()) as { _rev: string };
    answer = await edit(stored._rev);
  }
  const { rev } = (await answer.json()) as { rev: string };
  documents.set(id, { rev, n });
}

async function pushChunks(
  notes: NotesProcess,
  { replicated }: Acknowledged,
  name: string,
): Promise<void> {
  const docs = Array.from({ length: 20 }, (_each, index) => {
    const hash = Buffer.from(`${name}-${index}`)
      .toString("hex")
      .padEnd(32, "0")
      .slice(0, 32);
    return {
      _id: `h:${name}-${index}`,
      _rev: `1-${hash}`,
      _revisions: { start: 1, ids: [hash] },
      type: "leaf",
      data: "x".repeat(3000),
    };
  });
  const answer = await ask(`${notes.url}/vault/_bulk_docs`, {
    json: { docs, new_edits: false },
  });
  if (answer.status !== 201 || (await answer.text()) !== "[]\n") {
    throw new Error(`chunks rejected with ${answer.status}`);
  }
  for (const doc of docs) {
    replicated.set(doc._id, doc._rev);
  }
}

async function putCheckpoint(
  notes: NotesProcess,
  { local }: Acknowledged,
  name: string,
): Promise<void> {
  const known = local.get(name);
  const n = (known?.n ?? 0) + 1;
  const answer = await ask(`${notes.url}/vault/_local/${name}`, {
    method: "PUT",
    json: { _rev: `0-${known?.rev ?? 0}`, n },
  });
  const { rev } = (await answer.json()) as { rev: string };
  local.set(name, { rev: Number(rev.slice(2)), n });
}

async function findLost(
  notes: NotesProcess,
  { documents, replicated, local }: Acknowledged,
): Promise<string[]> {
  const lost: string[] = [];
  const wanted: Record<string, string[]> = {};
  for (const [id, { rev }] of documents) {
    wanted[id] = [rev];
  }
  for (const [id, rev] of replicated) {
    wanted[id] = [rev];
  }
  const diff = (await (
    await ask(`${notes.url}/vault/_revs_diff`, { json: wanted })
  ).json()) as Record<string, unknown>;
  lost.push(...Object.keys(diff).map((id) => `${id} ${wanted[id]![0]}`));
  for (const [id, { n }] of documents) {
    const stored = (await (await ask(`${notes.url}/vault/${id}`)).json()) as {
      n: number;
    };
    if (stored.n < n) {
      lost.push(`${id}: ${n} became ${stored.n}`);
    }
  }
  for (const [name, { n }] of local) {
    const stored = (await (
      await ask(`${notes.url}/vault/_local/${name}`)
    ).json()) as { n: number };
    if (!(stored.n >= n)) {
      lost.push(`_local/${name}: ${n} became ${stored.n}`);
    }
  }
  lost.push(...(await findContradictions(notes)));
  return lost;
}

/** Compares the documents in the counters, the list and the feed. */
async function findContradictions(notes: NotesProcess): Promise<string[]> {
  const get = async <T>(path: string): Promise<T> =>
    (await (await ask(`${notes.url}/vault${path}`)).json()) as T;
  const info = await get<{ doc_count: number; update_seq: string }>("");
  const all = await get<{ rows: { id: string; doc: unknown }[] }>(
    "/_all_docs?include_docs=true",
  );
  const feed = await get<{ results: { id: string }[]; last_seq: string }>(
    "/_changes",
  );
  const found: string[] = [];
  if (all.rows.length !== info.doc_count) {
    found.push(`${info.doc_count} counted, ${all.rows.length} listed`);
  }
  if (feed.results.length !== info.doc_count) {
    found.push(`${info.doc_count} counted, ${feed.results.length} in the feed`);
  }
  if (all.rows.some((row) => row.doc === null)) {
    found.push("a body is missing");
  }
  return found;
}
