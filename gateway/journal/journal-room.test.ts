import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  makeDirectory,
  openTestJournal,
  readAll,
  recordingLog,
  segmentFiles,
  type TestJournal,
} from "./journal-fixture.ts";
import { JournalFull } from "./journal-writer.ts";
import { SegmentAllocator } from "./segment-allocator.ts";
import { sum } from "../../core/sum.ts";

let directory: string;
let journal: TestJournal | undefined;
beforeEach(async () => {
  directory = await makeDirectory();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await journal?.close();
  journal = undefined;
  await fs.promises.rm(directory, { recursive: true, force: true });
});

async function open(
  options: Parameters<typeof openTestJournal>[1] = {},
): Promise<TestJournal> {
  journal = await openTestJournal(directory, options);
  return journal;
}

/** Starts calls until one is rejected; returns its number. */
function startUntilFull(to: TestJournal, first: number): number {
  for (let call = first; ; call++) {
    try {
      void to.intent({ id: `call-${call}`, startedAt: call });
    } catch (error) {
      expect(error).toBeInstanceOf(JournalFull);
      expect(error).toMatchObject({ code: "journal_full" });
      return call;
    }
  }
}

/** Makes the next system call of this name fail like on a full disk. */
function failOnce(name: "writeSync" | "fdatasync"): void {
  const failure = Object.assign(
    new Error(`ENOSPC: no space left on device, ${name}`),
    { code: "ENOSPC" },
  );
  if (name === "writeSync") {
    vi.spyOn(fs, name).mockImplementationOnce(() => {
      throw failure;
    });
  } else {
    vi.spyOn(fs, name).mockImplementationOnce((_fd, callback) =>
      callback(failure),
    );
  }
}

test("at its limit the journal rejects calls, and still records the end of every call in flight", async () => {
  const log = recordingLog();
  const small = await open({ limitBytes: 64 * 1024, log });
  const burst = startUntilFull(small, 0);
  // The last segment was still being created.
  await expect.poll(() => segmentFiles(directory)).toHaveLength(4);
  const started = startUntilFull(small, burst);
  expect(started).toBeGreaterThan(100);
  expect(small.state()).toMatchObject({
    full: true,
    nearLimit: true,
    openIntents: started,
  });
  expect(log.lines.at(-1)).toMatchObject({ level: "error" });
  for (let call = 0; call < started; call++) {
    small.outcome({ id: `call-${call}`, cost: call, error: "x".repeat(5_000) });
  }
  expect(small.state()).toMatchObject({
    openIntents: 0,
    pendingRecords: started,
  });
  const { rows, position } = await small.read(1_000);
  expect(rows.map(({ outcome }) => outcome?.cost)).toEqual(
    Array.from({ length: started }, (_, call) => call),
  );
  const segments = await segmentFiles(directory);
  expect(segments).not.toEqual([]);
  for (const name of segments) {
    expect(fs.statSync(`${directory}/${name}`).size).toBe(16 * 1024);
  }

  small.commit(position);
  await expect
    .poll(() => small.state())
    .toMatchObject({ full: false, nearLimit: false });
  small.intent({ id: "after", startedAt: 1 });
  small.outcome({ id: "after", cost: 1 });
});

test("in any order and length, the outcome of an accepted intent fits", async () => {
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ metadata: fc.nat(900) }) },
    { weight: 2, arbitrary: fc.record({ end: fc.nat(), length: fc.nat(700) }) },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 100, maxLength: 300 }),
      async (steps) => {
        const dir = await makeDirectory();
        const tight = await openTestJournal(dir, {
          segmentBytes: 4 * 1024,
          limitBytes: 20 * 1024,
        });
        const under: string[] = [];
        const costs = new Map<string, number>();
        const end = (at: number, length: number) => {
          const [id = ""] = under.splice(at % under.length, 1);
          tight.outcome({
            id,
            cost: costs.get(id) ?? -1,
            error: "e".repeat(length),
          });
        };
        try {
          for (const [index, next] of steps.entries()) {
            if ("metadata" in next) {
              try {
                tight.intent({
                  id: `call-${index}`,
                  startedAt: index,
                  metadata: "m".repeat(next.metadata),
                });
                under.push(`call-${index}`);
                costs.set(`call-${index}`, index);
              } catch (error) {
                expect(error).toBeInstanceOf(JournalFull);
              }
            } else if (under.length > 0) {
              end(next.end, next.length);
            }
          }
          while (under.length > 0) {
            end(0, 10_000);
          }
          const rows = await readAll(tight);
          expect(
            new Map(
              rows.map(({ intent, outcome }) => [intent.id, outcome?.cost]),
            ),
          ).toEqual(costs);
          expect(rows).toHaveLength(costs.size);
          const sizes = (await segmentFiles(dir)).map(
            (name) => fs.statSync(`${dir}/${name}`).size,
          );
          expect(sum(sizes)).toBeLessThanOrEqual(20 * 1024);
        } finally {
          await tight.close();
          await fs.promises.rm(dir, { recursive: true, force: true });
        }
      },
    ),
    // Leaves time to shrink a failure.
    { numRuns: 60, interruptAfterTimeLimit: 20_000 },
  );
});

test("on a full disk calls in flight end in segments created before", async () => {
  await open();
  journal?.intent({ id: "first", startedAt: 1 });
  await expect.poll(() => segmentFiles(directory)).toHaveLength(2);
  await journal?.close();

  const child = fileURLToPath(
    import.meta.resolve("./journal-disk-full-child.ts"),
  );
  const run = spawn(
    "sh",
    [
      "-c",
      'ulimit -f 64; exec "$0" "$1" "$2"',
      process.execPath,
      child,
      directory,
    ],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  let output = "";
  run.stdout.on("data", (part) => (output += part));
  try {
    expect(await once(run, "close")).toEqual([0, null]);
  } finally {
    run.kill("SIGKILL");
  }
  const result = JSON.parse(output) as {
    started: number;
    refusal: string;
    full: object;
    ended: object;
  };
  expect(result.refusal).toBe("journal_full");
  expect(result.started).toBeGreaterThan(40);
  expect(result.full).toMatchObject({ full: true, nearLimit: true });
  expect(result.ended).toMatchObject({ openIntents: 0 });
  // No file is left of the segments that did not fit.
  expect(
    fs.readdirSync(directory).filter((name) => name.endsWith(".new")),
  ).toEqual([]);

  const after = await open();
  const rows = await readAll(after);
  expect(rows.map(({ outcome }) => outcome?.cost ?? null)).toEqual([
    null,
    ...Array.from({ length: result.started }, (_, call) => call),
  ]);
});

test("an outcome longer than its reserve loses free text, never money", async () => {
  const roomy = await open();
  roomy.intent({ id: "a", startedAt: 1 });
  roomy.outcome({
    id: "a",
    cost: 0.123456789,
    error: `€"${"long ".repeat(1_000)}`,
    metadata: { attempts: [{ error: "y".repeat(3_000), status: 500 }] },
  });
  const [row] = await readAll(roomy);
  expect(row?.outcome).toMatchObject({ id: "a", cost: 0.123456789 });
  expect(row?.outcome?.metadata).toEqual({
    attempts: [{ error: `${"y".repeat(100)}…`, status: 500 }],
  });
  const bytes = roomy.state().bytes;
  expect(bytes).toBeLessThan(3 * 512);
});

test("an outcome whose other fields are too long is written where there is room beyond the reserves", async () => {
  const roomy = await open();
  const id = "i".repeat(600);
  roomy.intent({ id, startedAt: 1 });
  roomy.outcome({ id, cost: 3 });
  expect(await readAll(roomy)).toMatchObject([{ outcome: { id, cost: 3 } }]);
  expect(roomy.state().openIntents).toBe(0);
});

test("an intent longer than its limit loses free text, and is rejected when that does not suffice", async () => {
  const roomy = await open();
  roomy.intent({
    id: "a",
    startedAt: 1,
    metadata: { note: "n".repeat(9_000) },
  });
  roomy.outcome({ id: "a", cost: 1 });
  expect(await readAll(roomy)).toMatchObject([
    { intent: { id: "a", metadata: { note: `${"n".repeat(100)}…` } } },
  ]);
  expect(() =>
    roomy.intent({ id: "b", startedAt: 1, payer: "p".repeat(9_000) }),
  ).toThrow(
    "The intent of call b is longer than 4096 bytes even with its free text shortened.",
  );
  expect(roomy.state().openIntents).toBe(0);
});

test("a failed flush raises an alarm until the restart: no call starts, calls in flight end", async () => {
  const log = recordingLog();
  const failing = await open({ syncEveryMs: 1, log });
  failing.intent({ id: "under way", startedAt: 1 });
  failOnce("fdatasync");
  await expect
    .poll(() => failing.state().problem)
    .toMatch(/could not be flushed .*ENOSPC.*restart the gateway/);
  expect(failing.state().full).toBe(true);
  expect(log.lines).toMatchObject([{ level: "error" }]);
  expect(() => failing.intent({ id: "new", startedAt: 1 })).toThrow(
    JournalFull,
  );
  failing.outcome({ id: "under way", cost: 1 });
  expect(await readAll(failing)).toHaveLength(1);
});

test("sync always: a failed flush rejects", async () => {
  const failing = await open({ sync: "always" });
  await failing.intent({ id: "a", startedAt: 1 });
  failOnce("fdatasync");
  await expect(failing.outcome({ id: "a", cost: 1 })).rejects.toThrow(
    JournalFull,
  );
  expect(() => failing.intent({ id: "b", startedAt: 1 })).toThrow(
    "could not be flushed",
  );
});

test("a journal whose disk takes no lines counts as full until it takes them again", async () => {
  const log = recordingLog();
  const failing = await open({ log });
  failing.intent({ id: "a", startedAt: 1 });
  const readOnly = vi.spyOn(fs, "writeSync").mockImplementation(() => {
    throw new Error("EROFS: read-only file system, write");
  });
  for (const id of ["b", "c"]) {
    expect(() => failing.intent({ id, startedAt: 1 })).toThrow(JournalFull);
    expect(failing.state().full).toBe(true);
  }
  expect(log.lines).toMatchObject([
    { level: "error", message: expect.stringContaining("EROFS") as string },
  ]);
  readOnly.mockRestore();
  expect(failing.state().full).toBe(false);
  failing.outcome({ id: "a", cost: 1 });
  failing.record({ id: "b", startedAt: 1 }, { id: "b", cost: 2 });
  expect(await readAll(failing)).toMatchObject([
    { outcome: { cost: 1 } },
    { outcome: { cost: 2 } },
  ]);
});

test("a segment that cannot get its name leaves neither an open file nor its room behind", async () => {
  const allocator = new SegmentAllocator(
    {
      directory,
      segmentBytes: 4 * 1024,
      limitBytes: 64 * 1024,
      keepMs: 0,
      lastNumber: 0,
      now: Date.now,
      allocationFailed: () => undefined,
      deletionFailed: () => undefined,
    },
    [],
  );
  const close = vi.spyOn(fs, "closeSync");
  const opened = vi.spyOn(fs, "openSync");
  vi.spyOn(fs, "renameSync").mockImplementationOnce(() => {
    throw new Error("EIO: i/o error, rename");
  });
  expect(allocator.allocateNow()).toBeNull();
  expect(close).toHaveBeenCalledWith(opened.mock.results[0]?.value);
  expect(fs.readdirSync(directory)).toEqual([]);
});

test("an intent that cannot be written does not count as started", async () => {
  const failing = await open();
  failing.intent({ id: "a", startedAt: 1 });
  failOnce("writeSync");
  expect(() => failing.intent({ id: "b", startedAt: 1 })).toThrow(/ENOSPC/);
  expect(failing.state().openIntents).toBe(1);
  failing.intent({ id: "b", startedAt: 2 });
  failing.outcome({ id: "b", cost: 1 });
  expect(await readAll(failing)).toMatchObject([
    { intent: { id: "b", startedAt: 2 } },
  ]);
});

test("a call recorded in one piece takes one write; without it nothing of the call remains", async () => {
  const failing = await open();
  const record = (id: string) =>
    failing.record({ id, startedAt: 1 }, { id, cost: 0 });
  record("a");
  const write = vi.spyOn(fs, "writeSync");
  record("b");
  expect(write).toHaveBeenCalledTimes(1);
  failOnce("writeSync");
  expect(() => record("c")).toThrow(/ENOSPC/);
  expect(failing.state()).toMatchObject({ openIntents: 0, pendingRecords: 2 });
  expect(await readAll(failing)).toMatchObject([
    { intent: { id: "a" }, outcome: { cost: 0 } },
    { intent: { id: "b" }, outcome: { cost: 0 } },
  ]);
});

test("an outcome that cannot be written is kept and retried", async () => {
  const log = recordingLog();
  const failing = await open({ syncEveryMs: 1, log });
  failing.intent({ id: "a", startedAt: 1 });
  failOnce("writeSync");
  failing.outcome({ id: "a", cost: 5 });
  expect(log.lines).toMatchObject([{ level: "error" }]);
  await expect
    .poll(() => failing.read(10))
    .toMatchObject({ rows: [{ outcome: { cost: 5 } }] });
  expect(failing.state()).toMatchObject({ openIntents: 0, full: false });
});

test("a line written in part is overwritten by the next", async () => {
  const failing = await open();
  failing.intent({ id: "a", startedAt: 1 });
  const write = fs.writeSync;
  vi.spyOn(fs, "writeSync").mockImplementationOnce((...args: unknown[]) => {
    const [fd, bytes, offset, length, position] = args as [
      number,
      Buffer,
      number,
      number,
      number,
    ];
    write(fd, bytes, offset, length - 20, position);
    throw Object.assign(new Error("EIO: i/o error, write"), { code: "EIO" });
  });
  expect(() =>
    failing.intent({ id: "b", startedAt: 1, payer: "p".repeat(300) }),
  ).toThrow(/EIO/);
  failing.outcome({ id: "a", cost: 1 });
  await failing.close();
  const log = recordingLog();
  const reopened = await open({ log });
  expect(await readAll(reopened)).toMatchObject([
    { intent: { id: "a" }, outcome: { cost: 1 } },
  ]);
  expect(log.lines).toMatchObject([{ level: "warn" }]);
});
