import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  copyAsKilled,
  makeDirectory,
  openTestJournal,
  readAll,
  segmentFiles,
  type TestJournal,
} from "./journal-fixture.ts";

let directory: string;
let journal: TestJournal;
beforeEach(async () => {
  directory = await makeDirectory();
  journal = await openTestJournal(directory);
});
afterEach(async () => {
  await journal.close();
  await fs.rm(directory, { recursive: true, force: true });
});

function call(id: string, length = 0): void {
  journal.intent({ id, startedAt: 1, payer: "p".repeat(length) });
  journal.outcome({ id, cost: 1 });
}

const ids = (rows: readonly { readonly intent: { readonly id: string } }[]) =>
  rows.map(({ intent }) => intent.id);

test("a reader that keeps up gets written lines without reading the files", async () => {
  const intent = { id: "a", startedAt: 1, metadata: { at: 1 } };
  const outcome = { id: "a", cost: 1, metadata: { at: 2 } };
  journal.intent(intent);
  journal.outcome(outcome);
  const { rows } = await journal.read(10);
  expect(rows[0]?.intent).toBe(intent);
  expect(rows[0]?.outcome).toBe(outcome);
});

test("a shortened record is delivered as in the file", async () => {
  journal.intent({ id: "a", startedAt: 1 });
  journal.outcome({ id: "a", cost: 1, error: "e".repeat(2_000) });
  const killed = await copyAsKilled(directory);
  const [row] = await readAll(journal);
  const replayed = await openTestJournal(killed);
  expect(await readAll(replayed)).toEqual([row]);
  await replayed.close();
  await fs.rm(killed, { recursive: true });
});

test("rows come in the order of their outcomes, joined with their intents", async () => {
  journal.intent({ id: "a", startedAt: 1, payer: "müller" });
  journal.intent({ id: "b", startedAt: 2 });
  journal.outcome({ id: "b", cost: 0.5 });
  journal.outcome({ id: "a", cost: 0.25, error: "late" });
  expect(journal.state()).toMatchObject({ pendingRecords: 2, openIntents: 0 });
  const { rows, position } = await journal.read(10);
  expect(rows).toEqual([
    { intent: { id: "b", startedAt: 2 }, outcome: { id: "b", cost: 0.5 } },
    {
      intent: { id: "a", startedAt: 1, payer: "müller" },
      outcome: { id: "a", cost: 0.25, error: "late" },
    },
  ]);
  expect(journal.state().pendingRecords).toBe(2);
  journal.commit(position);
  expect(journal.state().pendingRecords).toBe(0);
});

test("a call recorded in one piece is read as any other, also from its file", async () => {
  journal.record(
    { id: "a", startedAt: 1, payer: "müller" },
    { id: "a", cost: 0, error: "é".repeat(30) },
  );
  expect(journal.state()).toMatchObject({ pendingRecords: 1, openIntents: 0 });
  const row = {
    intent: { id: "a", startedAt: 1, payer: "müller" },
    outcome: { id: "a", cost: 0, error: "é".repeat(30) },
  };
  expect((await journal.read(10)).rows).toEqual([row]);
  await journal.close();
  journal = await openTestJournal(directory);
  expect(await readAll(journal)).toEqual([row]);
});

test("reading continues while calls are written, with at most the requested number of rows", async () => {
  const read: string[] = [];
  for (let round = 0; round < 40; round++) {
    for (let at = 0; at < 5; at++) {
      call(`${round}-${at}`, 100);
    }
    read.push(...ids((await journal.read(3)).rows));
  }
  expect(read).toHaveLength(120);
  read.push(...ids(await readAll(journal)));
  const all = Array.from(
    { length: 200 },
    (_, at) => `${Math.floor(at / 5)}-${at % 5}`,
  );
  expect(read).toEqual(all);
});

test("an intent without an outcome is not delivered while its process runs", async () => {
  journal.intent({ id: "open", startedAt: 1 });
  call("done");
  expect(ids(await readAll(journal))).toEqual(["done"]);
  journal.outcome({ id: "open", cost: 2 });
  expect(ids(await readAll(journal))).toEqual(["open"]);
});

test("segments are created ahead, full of zeros", async () => {
  call("first");
  await expect.poll(() => segmentFiles(directory)).toHaveLength(2);
  const spare = await fs.readFile(path.join(directory, "000002.jsonl"));
  expect(spare.equals(Buffer.alloc(16 * 1024))).toBe(true);
  const first = await fs.stat(path.join(directory, "000001.jsonl"));
  expect(first.size).toBe(16 * 1024);
});

test("an outcome finds its intent in an earlier segment", async () => {
  journal.intent({ id: "long", startedAt: 1 });
  for (let at = 0; at < 40; at++) {
    call(`filler-${at}`, 900);
  }
  journal.outcome({ id: "long", cost: 3 });
  const rows = await readAll(journal);
  expect(rows).toHaveLength(41);
  expect(rows.at(-1)).toMatchObject({
    intent: { id: "long" },
    outcome: { cost: 3 },
  });
});

test("segments are deleted when all of their calls are in the ledger, oldest first", async () => {
  journal.intent({ id: "long", startedAt: 1 });
  for (let at = 0; at < 60; at++) {
    call(`filler-${at}`, 900);
  }
  const first = await journal.read(100);
  expect(first.rows).toHaveLength(60);
  journal.commit(first.position);
  journal.outcome({ id: "long", cost: 3 });
  const second = await journal.read(100);
  // The later segments contain only committed calls, but are deleted after the oldest.
  expect((await segmentFiles(directory))[0]).toBe("000001.jsonl");
  journal.commit(second.position);
  await expect
    .poll(() => segmentFiles(directory).then((names) => names[0]))
    .toBe("000004.jsonl");
  expect(journal.state().bytes).toBeLessThan(32 * 1024);
});

test("a position in the middle of a batch commits the rows up to it", async () => {
  for (let at = 0; at < 30; at++) {
    call(`call-${at}`, 900);
  }
  const { position } = await journal.read(100);
  journal.commit(position - 20);
  expect(journal.state().pendingRecords).toBe(20);
  journal.commit(position - 25);
  expect(journal.state().pendingRecords).toBe(20);
  expect(() => journal.commit(position + 1)).toThrow(RangeError);
  journal.commit(position);
  expect(journal.state().pendingRecords).toBe(0);
});

test("an open call does not keep the whole journal", async () => {
  journal.intent({ id: "stream", startedAt: 1, payer: "long" });
  for (let at = 0; at < 3_000; at++) {
    call(`call-${at}`, 900);
    if (at % 20 === 19) {
      journal.commit((await journal.read(100)).position);
    }
    // Three times the limit is written in total.
    if (at % 100 === 99) {
      await expect.poll(() => journal.state().bytes).toBeLessThan(512 * 1024);
    }
  }
  expect(journal.state()).toMatchObject({ openIntents: 1, full: false });
  expect(await segmentFiles(directory)).not.toContain("000001.jsonl");
  journal.outcome({ id: "stream", cost: 9 });
  expect(await readAll(journal)).toEqual([
    {
      intent: { id: "stream", startedAt: 1, payer: "long" },
      outcome: { id: "stream", cost: 9 },
    },
  ]);
});

test("an open call carried out of a deleted segment is interrupted once", async () => {
  journal.intent({ id: "stream", startedAt: 1 });
  for (let at = 0; at < 600; at++) {
    call(`call-${at}`, 900);
    if (at % 20 === 19) {
      journal.commit((await journal.read(100)).position);
    }
  }
  await expect
    .poll(() => segmentFiles(directory))
    .not.toContain("000001.jsonl");
  await journal.close();
  journal = await openTestJournal(directory);
  const rows = await readAll(journal);
  expect(rows.filter(({ outcome }) => outcome === null)).toMatchObject([
    { intent: { id: "stream", startedAt: 1 } },
  ]);
});

test("an amended intent replaces the first one, for its outcome and after a kill", async () => {
  for (const id of ["ended", "open"]) {
    journal.intent({ id, startedAt: 1, payer: "one" });
  }
  // The second line is in another segment, and the reader is between the two.
  for (let at = 0; at < 20; at++) {
    call(`filler-${at}`, 900);
  }
  expect(await readAll(journal)).toHaveLength(20);
  for (const id of ["ended", "open"]) {
    journal.amend({ id, startedAt: 1, payer: "two" });
  }
  journal.outcome({ id: "ended", cost: 2 });
  expect(journal.state()).toMatchObject({ openIntents: 1 });
  const ended = {
    intent: { id: "ended", startedAt: 1, payer: "two" },
    outcome: { id: "ended", cost: 2 },
  };
  expect(await readAll(journal)).toEqual([ended]);
  const killed = await copyAsKilled(directory);
  const replayed = await openTestJournal(killed);
  expect((await readAll(replayed)).slice(20)).toMatchObject([
    ended,
    { intent: { id: "open", payer: "two" }, outcome: null },
  ]);
  await replayed.close();
  await fs.rm(killed, { recursive: true });
});

test("only an open intent can be amended", () => {
  call("ended");
  expect(() => journal.amend({ id: "ended", startedAt: 1 })).toThrow(
    "Call ended has no open intent to amend.",
  );
});

test("after a restart everything not deleted is delivered again, the same each time", async () => {
  for (let at = 0; at < 50; at++) {
    call(`call-${at}`, 900);
  }
  journal.intent({ id: "open", startedAt: 1 });
  const first = await readAll(journal);
  await journal.close();
  journal = await openTestJournal(directory);
  const second = await readAll(journal);
  await journal.close();
  journal = await openTestJournal(directory);
  const third = await readAll(journal);
  expect(second.slice(0, 50)).toEqual(first);
  expect(second[50]).toMatchObject({ intent: { id: "open" }, outcome: null });
  expect(third).toEqual(second);
});

test("a journal closed with everything in the ledger has nothing to replay", async () => {
  for (let at = 0; at < 20; at++) {
    call(`call-${at}`);
  }
  await expect.poll(() => segmentFiles(directory)).toHaveLength(2);
  journal.commit((await journal.read(100)).position);
  await journal.close();
  expect(await segmentFiles(directory)).toEqual(["000002.jsonl"]);
  journal = await openTestJournal(directory);
  expect(journal.state()).toMatchObject({ pendingRecords: 0, bytes: 0 });
  expect(await readAll(journal)).toEqual([]);
  call("next");
  expect(ids(await readAll(journal))).toEqual(["next"]);
});

test("the instance id is stable", async () => {
  const { instance } = journal;
  expect(instance).toMatch(/^[0-9a-f-]{36}$/);
  await journal.close();
  journal = await openTestJournal(directory);
  expect(journal.instance).toBe(instance);
});

test("a second journal on the directory is rejected, in this process and in another", async () => {
  const sentence = `The journal ${directory} is in use by process ${process.pid}: stop that gateway, or set HEARTH_JOURNAL_DIR to another directory.`;
  await expect(openTestJournal(directory)).rejects.toThrow(sentence);
  const other = spawn(
    process.execPath,
    [
      fileURLToPath(import.meta.resolve("./journal-crash-child.ts")),
      directory,
      "0",
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let stderr = "";
  other.stderr.on("data", (part) => (stderr += part));
  try {
    const [code] = await once(other, "close");
    expect(code).toBe(1);
  } finally {
    other.kill("SIGKILL");
  }
  expect(stderr).toContain(sentence);
  call("still mine");
  expect(ids(await readAll(journal))).toEqual(["still mine"]);
});

test("sync always: the promise resolves, many writes share a flush", async () => {
  await journal.close();
  journal = await openTestJournal(directory, { sync: "always" });
  await Promise.all(
    Array.from({ length: 50 }, async (_, at) => {
      await journal.intent({ id: `call-${at}`, startedAt: 1 });
      await journal.outcome({ id: `call-${at}`, cost: 1 });
    }),
  );
  expect(await readAll(journal)).toHaveLength(50);
});

test("an id that is already open and an outcome without an intent are rejected", async () => {
  journal.intent({ id: "a", startedAt: 1 });
  expect(() => journal.intent({ id: "a", startedAt: 1 })).toThrow(
    "Call a already has an open intent.",
  );
  journal.outcome({ id: "unknown", cost: 1 });
  journal.outcome({ id: "a", cost: 1 });
  journal.outcome({ id: "a", cost: 2 });
  expect(await readAll(journal)).toMatchObject([
    { outcome: { id: "a", cost: 1 } },
  ]);
  expect(journal.state().pendingRecords).toBe(1);
});

test("an unusable directory is reported with one message", async () => {
  const file = path.join(directory, "instance");
  await expect(openTestJournal(path.join(file, "below"))).rejects.toThrow(
    /^The journal .*below cannot be used \(ENOTDIR: .*\): fix that, or set HEARTH_JOURNAL_DIR to another directory\.$/,
  );
});
