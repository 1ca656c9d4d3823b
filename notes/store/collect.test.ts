import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { allDocs } from "./all-docs.ts";
import type { Answer } from "./answer.ts";
import { piecesText } from "./assemble.ts";
import { edit } from "./change-document.ts";
import { collect } from "./collect.ts";
import { compact } from "./compaction.ts";
import { history } from "./history.ts";
import { readDocument } from "./incoming.ts";
import { getLocal, putLocal } from "./local-documents.ts";
import type { StoreRequest } from "./protocol.ts";
import { sequenceToken } from "./sequence.ts";
import { inTransaction, openStore, type Store } from "./store.ts";
import { waitFor } from "../../test/wait-for.ts";

let directory: string;
let store: Store;

const open = (): Store =>
  openStore(
    {
      name: "vault",
      kind: "vault",
      instanceStartTime: "1",
      file: join(directory, "vault.sqlite"),
      spoolDirectory: directory,
      passwordIterations: 1,
    },
    () => undefined,
  );
const close = (): void => {
  store.reader.close();
  store.writer.close();
};

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-collect-"));
  store = open();
});

afterEach(() => {
  close();
  rmSync(directory, { recursive: true });
});

const put = async (
  id: string,
  document: Readonly<Record<string, unknown>>,
): Promise<string> =>
  await inTransaction(store, () =>
    edit(store, id, readDocument(Buffer.from(JSON.stringify(document)))),
  );

const putChunk = async (id: string): Promise<string> =>
  await put(id, { type: "leaf", data: `${id}:`.padEnd(1000, "x") });

function requestOf(
  operation: StoreRequest["operation"],
  members: Partial<StoreRequest> & { readonly json?: unknown },
): StoreRequest {
  const { json, ...rest } = members;
  return {
    operation,
    query: {},
    maxDocumentSize: 1e6,
    ...(json === undefined
      ? {}
      : {
          body: { kind: "memory", bytes: Buffer.from(JSON.stringify(json)) },
        }),
    ...rest,
  };
}

function parsed(answer: Answer): unknown {
  return JSON.parse(
    "body" in answer ? answer.body : piecesText([...answer.pieces]),
  );
}

interface Collected {
  readonly unused: { readonly count: number };
  readonly old: { readonly count: number };
  readonly due: { readonly count: number };
  readonly freed: { readonly count: number; readonly bytes: number };
}

const run = async (
  options: Readonly<Record<string, unknown>> = {},
): Promise<Collected> => {
  const { notesSeq } = held();
  const json = {
    notesSeq,
    unused: ["h:old"],
    free: true,
    before: Date.now() + 1,
    readUpTo: notesSeq,
    ...options,
  };
  return parsed(
    await collect(store, requestOf("collect", { json })),
  ) as Collected;
};

interface Held {
  readonly notesSeq: number;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly next: string | null;
}

function held(): Held {
  const rows: Held["rows"][number][] = [];
  let page: Held;
  let start: string | null = "";
  do {
    const query = { held: start };
    page = parsed(history(store, requestOf("history", { query }))) as Held;
    rows.push(...page.rows);
    start = page.next;
  } while (start !== null);
  return { ...page, rows };
}

const chunkIds = (): unknown => {
  const query = { startkey: '"h:"', endkey: '"h;"' };
  const { rows } = parsed(allDocs(store, requestOf("allDocs", { query }))) as {
    rows: readonly { id: string }[];
  };
  return rows.map(({ id }) => id);
};

const note = { type: "plain", path: "a.md", mtime: 1 };

test("a chunk is removed once it is unused for long enough and every device has read past that; its space is freed", async () => {
  await putChunk("h:old");
  await putChunk("h:now");
  await put("a.md", { ...note, children: ["h:now"] });
  const { liveBytes, documents } = store.totals;

  expect(await run({ before: 1 })).toMatchObject({
    unused: { count: 1 },
    old: { count: 0 },
    due: { count: 0 },
    freed: { count: 0 },
  });
  expect(await run({ readUpTo: 2 })).toMatchObject({
    old: { count: 1 },
    due: { count: 0 },
    freed: { count: 0 },
  });
  expect(await run({ free: false })).toMatchObject({
    due: { count: 1 },
    freed: { count: 0 },
  });
  expect(chunkIds()).toEqual(["h:now", "h:old"]);

  const { freed } = await run();
  expect(freed.count).toBe(1);
  expect(chunkIds()).toEqual(["h:now"]);
  expect(store.totals).toMatchObject({
    liveBytes: liveBytes - freed.bytes,
    documents: documents - 1,
  });
  expect(await run()).toMatchObject({ unused: { count: 0 } });
});

test("a note written after the versions were read keeps every chunk", async () => {
  await putChunk("h:old");
  await put("a.md", { ...note, children: [] });
  await run({ free: false });
  const { notesSeq } = held();
  await put("b.md", { ...note, path: "b.md", children: ["h:old"] });
  await expect(run({ notesSeq })).rejects.toMatchObject({ code: "conflict" });
  expect(chunkIds()).toEqual(["h:old"]);
});

test("a chunk that is referenced or written again no longer counts as unused since before", async () => {
  const rev = await putChunk("h:old");
  await run({ free: false });
  const marked = Date.now();
  await sleep(2);
  // Referenced by a note for some time.
  await run({ free: false, unused: [] });
  expect(await run({ before: marked })).toMatchObject({
    unused: { count: 1 },
    old: { count: 0 },
  });
  const again = Date.now();
  await sleep(2);
  await put("h:old", { _rev: rev, _deleted: true });
  await putChunk("h:old");
  expect(await run({ before: again })).toMatchObject({
    unused: { count: 1 },
    old: { count: 0 },
  });
});

test("every stored version is listed: current, conflicted, superseded, and kept by the history after a compaction", async () => {
  const first = await put("a.md", { ...note, children: ["h:1"] });
  // A version that was current for less than a millisecond is not kept.
  await sleep(2);
  await put("a.md", { ...note, _rev: first, children: ["h:2"] });
  const children = (): unknown => held().rows.map((row) => row.children);
  expect(children()).toEqual([["h:1"], ["h:2"]]);
  compact(store);
  await waitFor("the end of the compaction", () => !store.compacting);
  expect(children()).toEqual([["h:2"], ["h:1"]]);
});

test("a request for a collected chunk resets the checkpoints of devices and servers that push, once, also after a restart", async () => {
  await putChunk("h:old");
  await run({ free: false });
  await run();
  close();
  store = open();
  const checkpoint = (
    name: string,
    last_seq: number | string,
  ): Promise<Answer> =>
    putLocal(
      store,
      requestOf("putLocal", {
        id: `_local/${name}`,
        json: { replicator: "pouchdb", last_seq },
      }),
    );
  const ask = async (): Promise<void> => {
    const json = { keys: ["h:old", "h:never"], include_docs: true };
    parsed(allDocs(store, requestOf("allDocs", { json })));
    await inTransaction(store, () => undefined);
  };
  const local = (id: string): (() => Answer) => {
    return () => getLocal(store, requestOf("getLocal", { id }));
  };
  await checkpoint("push", 7);
  await checkpoint("push-of-server", `7-h1${"0".repeat(32)}`);
  await checkpoint("pull", sequenceToken(store, 7));
  await ask();
  expect(local("_local/push")).toThrow("missing");
  expect(local("_local/push-of-server")).toThrow("missing");
  expect(local("_local/pull")).not.toThrow();
  await checkpoint("push", 7);
  await ask();
  expect(local("_local/push")).not.toThrow();
});
