import fs from "node:fs/promises";
import path from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { HOUR_MS } from "../../core/duration.ts";
import { createSmallDisk } from "../../test/servers/small-disk.ts";
import {
  copyAsKilled,
  makeDirectory,
  openTestJournal,
  readAll,
  recordingLog,
  segmentFiles,
  type TestJournal,
  type TestRow,
} from "./journal-fixture.ts";
import type { JournalMark } from "./journal-types.ts";

const LIMIT_BYTES = 256 * 1024;
/** Kept segments are checked once a second. */
const LOOKED_AT_MS = 10_000;

let directory: string;
let journal: TestJournal;
let now: number;

beforeEach(async () => {
  now = 1_000_000;
  directory = await makeDirectory();
  await open();
});
afterEach(async () => {
  await journal.close();
  await fs.rm(directory, { recursive: true, force: true });
});

async function open(
  options: Parameters<typeof openTestJournal>[1] = {},
): Promise<void> {
  journal = await openTestJournal(directory, {
    limitBytes: LIMIT_BYTES,
    keepMs: 24 * HOUR_MS,
    now: () => now,
    ...options,
  });
}

/** Goes on as a process that was killed leaves the journal. */
async function restartAsKilled(
  options: Parameters<typeof openTestJournal>[1] = {},
): Promise<void> {
  const copy = await copyAsKilled(directory);
  await journal.close();
  await fs.rm(directory, { recursive: true, force: true });
  directory = copy;
  await open(options);
}

let calls = 0;
function call(length = 900): string {
  const id = `call-${++calls}`;
  journal.intent({ id, startedAt: 1, payer: "p".repeat(length) });
  journal.outcome({ id, cost: calls });
  return id;
}

/** Reads and commits all current rows; the mark of their end. */
async function commitAll(): Promise<JournalMark> {
  for (;;) {
    const { rows, position, mark } = await journal.read(100);
    if (rows.length === 0) {
      return mark;
    }
    journal.commit(position);
  }
}

async function replayed(since: JournalMark | null): Promise<TestRow[]> {
  const rows: TestRow[] = [];
  for await (const batch of journal.replay(since)) {
    rows.push(...batch.rows);
  }
  return rows;
}

const idsOf = (rows: readonly TestRow[]) => rows.map(({ intent }) => intent.id);

test("segments in the ledger are kept for a time, and take no room in the journal's state", async () => {
  const first = Array.from({ length: 60 }, () => call());
  await commitAll();
  await expect.poll(() => journal.state().bytes).toBeLessThan(32 * 1024);
  expect(journal.state().keptBytes).toBe(3 * 16 * 1024);
  expect((await segmentFiles(directory))[0]).toBe("000001.jsonl");
  expect(idsOf(await replayed(null))).toEqual(first);

  now += 24 * HOUR_MS;
  await expect
    .poll(
      async () => {
        await journal.read(1);
        return segmentFiles(directory).then(([oldest]) => oldest);
      },
      { timeout: LOOKED_AT_MS },
    )
    .toBe("000004.jsonl");
  expect(journal.state().keptBytes).toBe(0);
});

test("how long a segment was kept survives a restart; a shorter time applies at once", async () => {
  now = Date.now();
  for (let at = 0; at < 60; at++) {
    call();
  }
  await commitAll();
  await expect.poll(() => journal.state().keptBytes).toBe(3 * 16 * 1024);
  now += 23 * HOUR_MS;
  await journal.close();
  await open();
  await readAll(journal);
  expect(journal.state().keptBytes).toBe(3 * 16 * 1024);

  await journal.close();
  await open({ keepMs: 22 * HOUR_MS });
  await readAll(journal);
  expect(journal.state().keptBytes).toBe(0);
  expect((await segmentFiles(directory))[0]).toBe("000004.jsonl");
});

test("after a restart only what was not committed is delivered again", async () => {
  for (let at = 0; at < 60; at++) {
    call();
  }
  await commitAll();
  const last = [call(), call()];
  await restartAsKilled();
  expect(journal.state().pendingRecords).toBe(2);
  expect(idsOf(await readAll(journal))).toEqual(last);
});

test("kept segments never make the journal reject a call or exceed its limit", async () => {
  let largest = 0;
  for (let round = 0; round < 60; round++) {
    for (let at = 0; at < 20; at++) {
      call();
    }
    await commitAll();
    const files = await segmentFiles(directory);
    largest = Math.max(largest, files.length * 16 * 1024);
    expect(journal.state()).toMatchObject({ full: false, nearLimit: false });
    await expect.poll(() => journal.state().bytes).toBeLessThan(64 * 1024);
  }
  // Five times the limit was written; as much as fits is still there.
  expect(largest).toBeLessThanOrEqual(LIMIT_BYTES);
  expect(journal.state().keptBytes).toBeGreaterThan(LIMIT_BYTES / 2);
  const { length } = await replayed(null);
  expect(length).toBeGreaterThan(100);

  // Without a ledger the journal takes all of its limit.
  let taken = 0;
  for (;;) {
    try {
      call();
      taken++;
    } catch {
      break;
    }
  }
  expect(taken).toBeGreaterThan(150);
  // A segment may still be under way.
  expect(journal.state().keptBytes).toBeLessThan(32 * 1024);
});

test("kept segments give way when other programs fill the disk", async ({
  skip,
}) => {
  const disk = createSmallDisk(4);
  if (disk === undefined) {
    return skip("mounting is not permitted");
  }
  const onDisk = await openTestJournal(path.join(disk.path, "journal"), {
    keepMs: 24 * HOUR_MS,
  });
  try {
    const write = async (count: number) => {
      for (let at = 0; at < count; at++) {
        const id = `call-${++calls}`;
        onDisk.intent({ id, startedAt: 1, payer: "p".repeat(900) });
        onDisk.outcome({ id, cost: 1 });
      }
      onDisk.commit((await onDisk.read(count)).position);
    };
    await write(200);
    await write(200);
    await expect
      .poll(() => onDisk.state().keptBytes)
      .toBeGreaterThan(300 * 1024);
    disk.fill();
    await write(100);
    await expect
      .poll(
        async () => {
          await onDisk.read(1);
          return onDisk.state().keptBytes;
        },
        { timeout: LOOKED_AT_MS },
      )
      .toBe(0);
    await write(100);
    expect(onDisk.state()).toMatchObject({ full: false, pendingRecords: 0 });
  } finally {
    await onDisk.close();
    disk.remove();
  }
});

test("what a ledger lacks is known also after a restart", async () => {
  call();
  const early = await commitAll();
  const later = Array.from({ length: 80 }, () => call());
  await commitAll();
  await restartAsKilled();
  expect(journal.reachesBackTo(early)).toBe(true);
  expect(idsOf(await replayed(early))).toEqual(later);
});

test("a mark before the oldest segment is out of reach", async () => {
  const early = await commitAll();
  for (let at = 0; at < 60; at++) {
    call();
  }
  await commitAll();
  now += 24 * HOUR_MS;
  await expect
    .poll(
      async () => {
        await journal.read(1);
        return journal.reachesBackTo(early);
      },
      { timeout: LOOKED_AT_MS },
    )
    .toBe(false);
});

test("lines that a power cut lost after their commit do not hide later ones", async () => {
  call();
  const { mark, position } = await journal.read(10);
  journal.commit(position);
  await restartAsKilled();
  const [active] = await segmentFiles(directory);
  const file = path.join(directory, active ?? "");
  await fs.writeFile(file, Buffer.alloc(16 * 1024));
  await restartAsKilled();
  expect(journal.acknowledged()).toMatchObject({ segment: 1, offset: 0 });
  const next = call(10);
  expect(idsOf(await readAll(journal))).toEqual([next]);
  await commitAll();
  expect(mark.segment).toBe(1);
});

test("numbers of segments continue after all were lost", async () => {
  for (let at = 0; at < 60; at++) {
    call();
  }
  await commitAll();
  await journal.close();
  for (const name of await segmentFiles(directory)) {
    await fs.rm(path.join(directory, name));
  }
  await open();
  const next = call();
  expect(idsOf(await readAll(journal))).toEqual([next]);
  expect(await segmentFiles(directory)).toContain("000005.jsonl");
});

test("a damaged note of what was committed is as none", async () => {
  const ids = [call(), call()];
  await commitAll();
  await journal.close();
  await fs.writeFile(path.join(directory, "acknowledged"), "00000000 {}\n");
  await open();
  expect(journal.acknowledged()).toBe(null);
  expect(idsOf(await readAll(journal))).toEqual(ids);
});

test("a call that was carried into a later segment is replayed once", async () => {
  await journal.close();
  await open({ limitBytes: 1024 * 1024 });
  journal.intent({ id: "stream", startedAt: 1 });
  const marks: JournalMark[] = [];
  for (let at = 0; at < 600; at++) {
    call();
    if (at % 20 === 19) {
      marks.push(await commitAll());
    }
  }
  // Without the carried intent the first segment would still hold the call.
  expect(marks.at(-1)?.from).toBeGreaterThan(2);
  journal.outcome({ id: "stream", cost: 9 });
  await commitAll();
  for (const [at, mark] of marks.entries()) {
    const ids = idsOf(await replayed(mark));
    expect(ids).toHaveLength(20 * (29 - at) + 1);
    expect(ids.at(-1)).toBe("stream");
  }
  await restartAsKilled({ limitBytes: 1024 * 1024 });
  expect(idsOf(await replayed(marks.at(-1) ?? null))).toEqual(["stream"]);
});

test("from each mark, exactly the rows after it are replayed, across crashes, restarts and interrupted calls", async () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ start: fc.nat(1_500) }) },
    { weight: 6, arbitrary: fc.record({ end: fc.nat() }) },
    {
      weight: 4,
      arbitrary: fc.record({ read: fc.integer({ min: 1, max: 9 }) }),
    },
    { weight: 1, arbitrary: fc.record({ crash: fc.boolean() }) },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 40, maxLength: 160 }),
      async (steps) => {
        const log = recordingLog();
        const options = { log, limitBytes: 1024 * 1024 };
        await journal.close();
        await fs.rm(directory, { recursive: true, force: true });
        directory = await makeDirectory();
        await open(options);
        let open_: string[] = [];
        const committed = new Map<string, TestRow>();
        const marks: { mark: JournalMark | null; before: Set<string> }[] = [
          { mark: null, before: new Set() },
        ];
        const read = async (maxRows: number) => {
          const { rows, position, mark } = await journal.read(maxRows);
          for (const row of rows) {
            committed.set(row.intent.id, row);
          }
          journal.commit(position);
          if (rows.length > 0) {
            marks.push({ mark, before: new Set(committed.keys()) });
          }
        };
        for (const one of steps) {
          if ("start" in one) {
            const id = `call-${++calls}`;
            const payer = "p".repeat(one.start);
            journal.intent({ id, startedAt: calls, payer });
            open_.push(id);
          } else if ("end" in one) {
            const [id] = open_.splice(one.end % Math.max(1, open_.length), 1);
            if (id !== undefined) {
              journal.outcome({ id, cost: calls });
            }
          } else if ("read" in one) {
            await read(one.read);
          } else {
            await (one.crash
              ? restartAsKilled(options)
              : journal.close().then(() => open(options)));
            open_ = [];
          }
        }
        await read(1_000);
        for (const { mark, before } of marks) {
          const rows = await replayed(mark);
          // Calls that a crash interrupted may come again: where they became so, there is no line.
          const completed = rows.filter(({ outcome }) => outcome !== null);
          const lacking = [...committed.values()].filter(
            ({ intent }) => !before.has(intent.id),
          );
          expect(new Set(idsOf(completed)).size).toBe(completed.length);
          expect(idsOf(rows)).toEqual(
            expect.arrayContaining(lacking.map(({ intent }) => intent.id)),
          );
          for (const row of rows) {
            expect(row).toEqual(committed.get(row.intent.id));
            expect(row.outcome === null || !before.has(row.intent.id)).toBe(
              true,
            );
          }
        }
        expect(log.lines.filter(({ level }) => level === "error")).toEqual([]);
      },
    ),
    { numRuns: 60 },
  );
});
