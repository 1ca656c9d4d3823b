// Measures the embedded notes store on this machine: npm run bench:notes
import { randomBytes } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { newDevice, remote } from "../contract/devices.ts";
import {
  admin,
  ask,
  startNotes,
  testIni,
  type NotesProcess,
} from "../contract/start-notes.ts";
import { readCommandLine } from "../../scripts/command-line.ts";

const MB = 1_000_000;
const CHUNK_BYTES = 100_000;
const VAULT_CHUNKS = 1000;
const NOTES_IN_VAULT = 2000;
const DEVICE_MB = 45;
const LIVE_CHANGES = 200;

interface Document {
  readonly _id: string;
  readonly _rev: string;
  readonly _revisions: { readonly start: number; readonly ids: string[] };
  readonly type: string;
  readonly [member: string]: unknown;
}

readCommandLine("Usage: npm run bench:notes (no options)\n", {}, () => {});

const notes = await startNotes(testIni());
try {
  await measure(notes);
} finally {
  await notes.stop();
}

async function measure(store: NotesProcess): Promise<void> {
  const vault = makeVault("vault", VAULT_CHUNKS, NOTES_IN_VAULT);
  await ask(`${store.url}/vault`, { method: "PUT" });

  const { cpu: cpuBefore } = await usage(store);
  const pushed = await timed(() => push(store, "vault", vault));
  report("first device pushes a vault of 100 MB", seconds(pushed));
  const pulled = await timed(() => fastFetch(store, vault.length));
  report("fresh device pulls it (LiveSync's fast fetch)", seconds(pulled));
  const device = newDevice();
  const replicated = await timed(() =>
    device.replicate.from(remote(store.url, "vault", admin), {
      batch_size: 100,
    }),
  );
  report("fresh device pulls it (PouchDB replication)", seconds(replicated));
  const other = newDevice();
  const floor = await timed(() =>
    device.replicate.to(other, { batch_size: 100 }),
  );
  report("  floor: PouchDB memory to memory, same data", seconds(floor));
  await Promise.all([device.destroy(), other.destroy()]);
  report(
    "CPU of the store for all of that",
    `${((await usage(store)).cpu - cpuBefore).toFixed(1)} s`,
  );
  report("disk for 100 MB", `${Math.round(diskBytes(store) / MB)} MB`);
  report("memory peak so far", (await usage(store)).peak);

  await measureLive(store);

  const four = await timed(async () => {
    await Promise.all(
      ["a", "b", "c", "d"].map(async (name) => {
        const chunks = (DEVICE_MB * MB) / CHUNK_BYTES;
        await push(store, "vault", makeVault(`device-${name}`, chunks, 1));
      }),
    );
  });
  report(`four devices push ${DEVICE_MB} MB each at once`, seconds(four));
  report("memory peak then", (await usage(store)).peak);

  const IDLE_SECONDS = 5;
  const { cpu: idleFrom } = await usage(store);
  await sleep(IDLE_SECONDS * 1000);
  const idle = ((await usage(store)).cpu - idleFrom) / IDLE_SECONDS;
  report("idle CPU", `${(idle * 100).toFixed(1)} %`);
}

async function measureLive(store: NotesProcess): Promise<void> {
  const writer = remote(store.url, "vault", admin);
  const seen = new Map<string, number>();
  const stop = new AbortController();
  const listening = listen(store, seen, stop.signal);
  await sleep(200);
  const delays: number[] = [];
  const { cpu: cpuBefore } = await usage(store);
  const started = performance.now();
  for (let n = 0; n < LIVE_CHANGES; n += 1) {
    const id = `live-${n}`;
    const sent = performance.now();
    await writer.put({ _id: id, type: "plain", text: "x".repeat(500) });
    while (!seen.has(id)) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    delays.push(seen.get(id)! - sent);
    await sleep(20);
  }
  const share =
    ((await usage(store)).cpu - cpuBefore) /
    ((performance.now() - started) / 1000);
  stop.abort();
  await listening;
  delays.sort((a, b) => a - b);
  const at = (part: number): string =>
    `${delays[Math.floor(delays.length * part)]!.toFixed(1)} ms`;
  report(
    "change sent to second device notified",
    `p50 ${at(0.5)}, p99 ${at(0.99)}`,
  );
  report("CPU at 30 changes per second", `${(share * 100).toFixed(1)} %`);
}

/** Listens like LiveSync, with one longpoll after the other. */
async function listen(
  store: NotesProcess,
  seen: Map<string, number>,
  signal: AbortSignal,
): Promise<void> {
  const { update_seq } = (await (await ask(`${store.url}/vault`)).json()) as {
    update_seq: string;
  };
  let since = update_seq;
  try {
    for (;;) {
      const answer = await ask(
        `${store.url}/vault/_changes?style=all_docs&filter=_selector&since=${since}&limit=25&feed=longpoll&heartbeat=30000`,
        { json: { selector: { type: { $ne: "leaf" } } }, signal },
      );
      const { results, last_seq } = (await answer.json()) as {
        results: { id: string }[];
        last_seq: string;
      };
      for (const { id } of results) {
        seen.set(id, performance.now());
      }
      since = last_seq;
    }
  } catch {
    // Stopped.
  }
}

function makeVault(
  name: string,
  chunks: number,
  noteCount: number,
): Document[] {
  const document = (id: string, members: object): Document => {
    const hash = randomBytes(16).toString("hex");
    return {
      ...members,
      _id: id,
      _rev: `1-${hash}`,
      _revisions: { start: 1, ids: [hash] },
    } as unknown as Document;
  };
  const data = randomBytes((CHUNK_BYTES * 3) / 4).toString("base64");
  return [
    ...Array.from({ length: chunks }, (_each, index) =>
      document(`h:+${name}${index}`, { type: "leaf", data, e_: true }),
    ),
    ...Array.from({ length: noteCount }, (_each, index) =>
      document(`f:${name}${index}`, {
        type: "plain",
        path: "/\\:%=".padEnd(250, "x"),
        children: [],
        size: 0,
      }),
    ),
  ];
}

/** Pushes like PouchDB: queries the missing revisions, then sends the documents in batches of a hundred. */
async function push(
  store: NotesProcess,
  database: string,
  documents: readonly Document[],
): Promise<void> {
  const BATCH = 100;
  for (let at = 0; at < documents.length; at += BATCH) {
    const docs = documents.slice(at, at + BATCH);
    await ask(`${store.url}/${database}/_revs_diff`, {
      json: Object.fromEntries(docs.map((doc) => [doc._id, [doc._rev]])),
    });
    const answer = await ask(`${store.url}/${database}/_bulk_docs`, {
      json: { docs, new_edits: false },
    });
    if (answer.status !== 201) {
      throw new Error(await answer.text());
    }
    await answer.arrayBuffer();
  }
}

async function fastFetch(store: NotesProcess, limit: number): Promise<void> {
  const answer = await ask(
    `${store.url}/vault/_changes?feed=continuous&include_docs=true&style=all_docs&conflicts=true&revs=true&since=0&timeout=1000&limit=${limit}`,
  );
  let rows = 0;
  for await (const piece of answer.body!) {
    rows += Buffer.from(piece).toString("latin1").split("\n").length - 1;
  }
  if (rows < limit) {
    throw new Error(`received ${rows} of ${limit} rows`);
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(2)} s`;
}

function report(what: string, value: string): void {
  process.stdout.write(`${what.padEnd(52)} ${value}\n`);
}

/** CPU seconds and peak memory of the store's process since it started. */
async function usage(
  store: NotesProcess,
): Promise<{ readonly cpu: number; readonly peak: string }> {
  const system = (await (
    await ask(`${store.url}/_node/_local/_system`)
  ).json()) as {
    resources: { userCPUTime: number; systemCPUTime: number; maxRSS: number };
  };
  const { userCPUTime, systemCPUTime, maxRSS } = system.resources;
  return {
    cpu: (userCPUTime + systemCPUTime) / 1_000_000,
    peak: `${Math.round(maxRSS / 1024)} MB`,
  };
}

function diskBytes(store: NotesProcess): number {
  const directory = join(store.directory, "data", "databases");
  return readdirSync(directory)
    .filter((file) => file.startsWith("vault"))
    .reduce((sum, file) => sum + statSync(join(directory, file)).size, 0);
}
