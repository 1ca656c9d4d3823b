import { spawn } from "node:child_process";
import fs from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FRAME_BYTES } from "./journal-line.ts";
import {
  copyAsKilled,
  makeDirectory,
  openTestJournal,
  readAll,
  recordingLog,
  segmentFiles,
} from "./journal-fixture.ts";

let directory: string;
const others: string[] = [];
beforeEach(async () => {
  directory = await makeDirectory();
});
afterEach(async () => {
  for (const dir of [directory, ...others.splice(0)]) {
    await fs.rm(dir, { recursive: true, force: true });
  }
});

/** Runs the child until it has acknowledged `lines` lines, kills it, and returns all it acknowledged. */
async function runAndKill(round: number, lines: number): Promise<string[]> {
  const child = spawn(
    process.execPath,
    [
      fileURLToPath(import.meta.resolve("./journal-crash-child.ts")),
      directory,
      String(round),
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  let output = "";
  let seen = 0;
  try {
    for await (const part of child.stdout.setEncoding("utf8")) {
      output += part;
      seen += part.split("\n").length - 1;
      // Keeps reading after the kill: what is left in the pipe was acknowledged too.
      if (seen >= lines) {
        child.kill("SIGKILL");
      }
    }
  } finally {
    child.kill("SIGKILL");
  }
  return output.split("\n").slice(0, -1);
}

test("a killed process loses no acknowledged line", async () => {
  const acknowledged = {
    intent: new Set<string>(),
    outcome: new Set<string>(),
  };
  for (let round = 0; round < 8; round++) {
    const lines = 1 + Math.floor(Math.random() * 3_000);
    for (const line of await runAndKill(round, lines)) {
      const [kind, id = ""] = line.split(" ");
      if (kind === "intent" || kind === "outcome") {
        acknowledged[kind].add(id);
      }
    }
  }
  const journal = await openTestJournal(directory);
  const left = await readAll(journal);
  await journal.close();

  const ledger = await fs.readFile(path.join(directory, "ledger"), "utf8");
  const drained = ledger
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as { id: string; interrupted: boolean });
  const rows = [
    ...drained,
    ...left.map(({ intent: { id }, outcome }) => ({
      id,
      interrupted: outcome === null,
    })),
  ];
  const all = new Set(rows.map(({ id }) => id));
  const interrupted = new Set(
    rows.filter((row) => row.interrupted).map(({ id }) => id),
  );
  const missing = (ids: Set<string>) => [...ids].filter((id) => !all.has(id));
  expect(missing(acknowledged.intent)).toEqual([]);
  expect(missing(acknowledged.outcome)).toEqual([]);
  expect([...interrupted].filter((id) => acknowledged.outcome.has(id))).toEqual(
    [],
  );
  // The kill may fall between a line and its acknowledgement: at most one call a round.
  const unsaid = [...all].filter((id) => !acknowledged.intent.has(id));
  expect(unsaid.length).toBeLessThanOrEqual(8);
});

test("the last record cut at every byte is recognised and only it is lost", async () => {
  const writer = await openTestJournal(directory, { now: () => 1_000 });
  writer.intent({ id: "first", startedAt: 1 });
  writer.intent({ id: "second", startedAt: 2 });
  writer.outcome({ id: "first", cost: 1 });
  const [name = ""] = await segmentFiles(directory);
  const before = writer.state().bytes;
  writer.outcome({ id: "second", cost: 2, error: "größer" });
  const after = writer.state().bytes;
  const killed = await copyAsKilled(directory);
  others.push(killed);
  await writer.close();

  const file = path.join(killed, name);
  const whole = await fs.readFile(file);
  expect(after - before).toBeGreaterThan(FRAME_BYTES);
  for (let cut = before; cut <= after; cut++) {
    const torn = Buffer.from(whole);
    torn.fill(0, cut);
    await fs.writeFile(file, torn);
    const log = recordingLog();
    const reopened = await openTestJournal(killed, { log });
    const rows = await readAll(reopened);
    expect(rows[0]).toMatchObject({
      intent: { id: "first" },
      outcome: { cost: 1 },
    });
    const complete = cut === after;
    expect(rows[1]?.intent.id).toBe("second");
    expect(rows[1]?.outcome).toEqual(
      complete ? { id: "second", cost: 2, error: "größer" } : null,
    );
    expect(log.lines.map(({ level }) => level)).toEqual(
      complete || cut === before ? [] : ["warn"],
    );
    expect(reopened.state().bytes).toBe(complete ? after : before);
    // Lines written after the cut directly follow the last good line.
    reopened.intent({ id: "third", startedAt: 3 });
    reopened.outcome({ id: "third", cost: 3 });
    expect((await readAll(reopened)).map(({ intent }) => intent.id)).toEqual([
      "third",
    ]);
    await reopened.close();
    const again = recordingLog();
    const twice = await openTestJournal(killed, { log: again });
    expect(again.lines).toEqual([]);
    expect(await readAll(twice)).toHaveLength(3);
    await twice.close();
  }
});

test("a damaged line in the middle is reported and skipped", async () => {
  const writer = await openTestJournal(directory);
  for (let call = 0; call < 5; call++) {
    writer.intent({ id: `call-${call}`, startedAt: call });
    writer.outcome({ id: `call-${call}`, cost: call });
  }
  await writer.close();
  const file = path.join(directory, "000001.jsonl");
  const bytes = await fs.readFile(file);
  bytes[bytes.indexOf('"cost":2')] = 0x7e;
  await fs.writeFile(file, bytes);

  const log = recordingLog();
  const journal = await openTestJournal(directory, { log });
  const rows = await readAll(journal);
  expect(rows.map(({ outcome }) => outcome?.cost ?? null)).toEqual([
    0,
    1,
    3,
    4,
    null,
  ]);
  expect(log.lines).toMatchObject([
    { level: "error", fields: { segment: 1, damagedLines: 1 } },
  ]);
  await journal.close();
});

test("an outcome whose intent was damaged is reported with its call", async () => {
  const writer = await openTestJournal(directory);
  for (const id of ["a", "b"]) {
    writer.intent({ id, startedAt: 7 });
    writer.outcome({ id, cost: 1 });
  }
  await writer.close();
  const file = path.join(directory, "000001.jsonl");
  const bytes = await fs.readFile(file);
  bytes[bytes.indexOf('"startedAt"')] = 0;
  await fs.writeFile(file, bytes);

  const log = recordingLog();
  const journal = await openTestJournal(directory, { log });
  expect((await readAll(journal)).map(({ intent }) => intent.id)).toEqual([
    "b",
  ]);
  expect(log.lines.at(-1)).toMatchObject({
    level: "error",
    fields: { id: "a" },
  });
  expect(journal.state().pendingRecords).toBe(1);
  await journal.close();
});

test("a page that never reached the disk costs only the lines on it", async () => {
  const writer = await openTestJournal(directory);
  for (let call = 0; call < 60; call++) {
    writer.intent({ id: `call-${call}`, startedAt: call });
    writer.outcome({ id: `call-${call}`, cost: call });
  }
  const end = writer.state().bytes;
  await writer.close();
  expect(end).toBeGreaterThan(8192);
  const file = path.join(directory, "000001.jsonl");
  const bytes = await fs.readFile(file);
  const lost = bytes.subarray(4096, 8192).toString().split("\n").length;
  bytes.fill(0, 4096, 8192);
  await fs.writeFile(file, bytes);

  const log = recordingLog();
  const journal = await openTestJournal(directory, { log });
  const rows = await readAll(journal);
  expect(rows.length).toBeGreaterThanOrEqual(60 - lost / 2 - 1);
  expect(rows.at(-1)).toMatchObject({ outcome: { cost: 59 } });
  expect(log.lines[0]).toMatchObject({ level: "error" });
  await journal.close();
});

test("calls in flight at a kill are delivered as interrupted, the same at every replay", async () => {
  let clock = 10_000;
  const now = () => clock++;
  const writer = await openTestJournal(directory, { now });
  for (const id of ["ended", "lost-1", "lost-2"]) {
    writer.intent({ id, startedAt: clock });
  }
  writer.outcome({ id: "ended", cost: 1 });
  const lastLine = clock - 1;
  const killed = await copyAsKilled(directory);
  await writer.close();

  clock = 90_000;
  const second = await openTestJournal(killed, { now });
  expect(second.state()).toMatchObject({ pendingRecords: 3, openIntents: 0 });
  const rows = await readAll(second);
  expect(rows.slice(1)).toEqual([
    {
      intent: { id: "lost-1", startedAt: 10_003 },
      outcome: null,
      recoveredAt: lastLine,
    },
    {
      intent: { id: "lost-2", startedAt: 10_004 },
      outcome: null,
      recoveredAt: lastLine,
    },
  ]);
  // Calls of the current process are not interrupted, however long they take.
  second.intent({ id: "live", startedAt: clock });
  expect(await readAll(second)).toEqual([]);
  const killedAgain = await copyAsKilled(killed);
  others.push(killed, killedAgain);
  await second.close();

  clock = 200_000;
  const third = await openTestJournal(killedAgain, { now });
  const replayed = await readAll(third);
  expect(replayed.slice(0, 3)).toEqual(rows);
  expect(replayed.slice(3)).toMatchObject([
    { intent: { id: "live" }, outcome: null },
  ]);
  await third.close();
});

test("damaged bytes anywhere cost only the calls whose lines they hit", async () => {
  const writer = await openTestJournal(directory);
  for (let call = 0; call < 30; call++) {
    writer.intent({ id: `call-${call}`, startedAt: call });
    writer.outcome({ id: `call-${call}`, cost: call });
  }
  const end = writer.state().bytes;
  await writer.close();
  const file = path.join(directory, "000001.jsonl");
  const whole = await fs.readFile(file);

  const damage = fc.record({
    at: fc.nat(end - 1),
    bytes: fc.uint8Array({ minLength: 1, maxLength: 80 }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(damage, { minLength: 1, maxLength: 4 }),
      async (damages) => {
        const bytes = Buffer.from(whole);
        for (const { at, bytes: written } of damages) {
          bytes.set(written, at);
        }
        await fs.writeFile(file, bytes);
        const expected = intactCalls(whole, bytes);
        const journal = await openTestJournal(directory);
        try {
          const rows = await readAll(journal);
          const ended = rows.filter(({ outcome }) => outcome !== null);
          expect(ended.map(({ outcome }) => outcome?.cost)).toEqual(expected);
        } finally {
          await journal.close();
        }
      },
    ),
    { numRuns: 150, interruptAfterTimeLimit: 20_000 },
  );
});

/** Numbers of the calls of which neither line differs, nor the newline before it, by which a line is found. */
function intactCalls(whole: Buffer, damaged: Buffer): number[] {
  const intact = new Map<string, number>();
  for (let start = 0; whole[start] !== 0;) {
    const next = whole.indexOf("\n", start) + 1;
    const from = Math.max(0, start - 1);
    const id = /"call-(\d+)"/.exec(whole.toString("utf8", start, next))?.[1];
    const same = whole.compare(damaged, from, next, from, next) === 0;
    if (same && id !== undefined) {
      intact.set(id, (intact.get(id) ?? 0) + 1);
    }
    start = next;
  }
  return [...intact].flatMap(([id, lines]) =>
    lines === 2 ? [Number(id)] : [],
  );
}
