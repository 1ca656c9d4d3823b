import fs from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  copyAsKilled,
  makeDirectory,
  openTestJournal,
  readAll,
  type TestJournal,
  type TestRow,
} from "./journal-fixture.ts";
import { JournalFull } from "./journal-writer.ts";

type Step =
  | { readonly kind: "intent"; readonly length: number }
  | { readonly kind: "amend"; readonly which: number; readonly length: number }
  | {
      readonly kind: "outcome";
      readonly which: number;
      readonly length: number;
    }
  | { readonly kind: "record"; readonly lengths: readonly [number, number] }
  | { readonly kind: "read"; readonly rows: number }
  | { readonly kind: "commit"; readonly part: number }
  | { readonly kind: "kill" | "close" | "pause" };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant("intent" as const),
      length: fc.nat(600),
    }),
  },
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant("outcome" as const),
      which: fc.nat(),
      length: fc.nat(300),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("amend" as const),
      which: fc.nat(),
      length: fc.nat(600),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("record" as const),
      lengths: fc.tuple(fc.nat(600), fc.nat(300)),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("read" as const),
      rows: fc.integer({ min: 1, max: 30 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("commit" as const),
      part: fc.integer({ min: 0, max: 4 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom("kill" as const, "close" as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("pause" as const) }) },
);

const OPTIONS = {
  segmentBytes: 4 * 1024,
  limitBytes: 64 * 1024,
  syncEveryMs: 1,
} as const;

/** Simulates gateways on one journal: acknowledged calls, and a ledger that keeps the first row of each call. */
async function live(
  steps: readonly Step[],
  linesInMemory: number,
  directories: string[],
): Promise<void> {
  const options = { ...OPTIONS, linesInMemory };
  /** The length of each call's latest payer. */
  const started = new Map<string, number>();
  const ended = new Map<string, number>();
  const ledger = new Map<string, TestRow>();
  let open: string[] = [];
  let held: TestRow[] = [];
  let position = 0;
  let directory = await makeDirectory();
  directories.push(directory);
  let journal: TestJournal = await openTestJournal(directory, options);

  function insert(rows: readonly TestRow[]): void {
    for (const row of rows) {
      if (!ledger.has(row.intent.id)) {
        ledger.set(row.intent.id, row);
      }
    }
  }

  async function reopen(): Promise<void> {
    open = [];
    held = [];
    position = 0;
    journal = await openTestJournal(directory, options);
  }

  async function take(next: Step, index: number): Promise<void> {
    switch (next.kind) {
      case "intent":
        try {
          const id = `call-${index}`;
          journal.intent({
            id,
            startedAt: index,
            payer: "p".repeat(next.length),
          });
          started.set(id, next.length);
          open.push(id);
        } catch (error) {
          expect(error).toBeInstanceOf(JournalFull);
        }
        return;
      case "amend": {
        const id = open[next.which % Math.max(1, open.length)];
        if (id === undefined) {
          return;
        }
        try {
          journal.amend({
            id,
            startedAt: index,
            payer: "p".repeat(next.length),
          });
          started.set(id, next.length);
        } catch (error) {
          expect(error).toBeInstanceOf(JournalFull);
        }
        return;
      }
      case "outcome": {
        const [id] = open.splice(next.which % Math.max(1, open.length), 1);
        if (id === undefined) {
          return;
        }
        journal.outcome({ id, cost: index, error: "e".repeat(next.length) });
        ended.set(id, index);
        return;
      }
      case "record": {
        const id = `call-${index}`;
        const [payer, error] = next.lengths;
        try {
          journal.record(
            { id, startedAt: index, payer: "p".repeat(payer) },
            { id, cost: index, error: "e".repeat(error) },
          );
          started.set(id, payer);
          ended.set(id, index);
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(JournalFull);
        }
        return;
      }
      case "read": {
        const batch = await journal.read(next.rows);
        held.push(...batch.rows);
        position = batch.position;
        return;
      }
      case "commit": {
        const rows = Math.ceil((held.length * next.part) / 4);
        insert(held.splice(0, rows));
        journal.commit(position - held.length);
        return;
      }
      case "kill": {
        const killed = directory;
        directory = await copyAsKilled(killed);
        directories.push(directory);
        await journal.close();
        await reopen();
        return;
      }
      case "close":
        await journal.close();
        await reopen();
        return;
      case "pause":
        // Lets flushes, spare segments and deletions continue.
        await sleep(2);
        return;
      default:
        next satisfies never;
    }
  }

  try {
    for (const [index, next] of steps.entries()) {
      await take(next, index);
    }
    await journal.close();
    await reopen();
    insert(await readAll(journal));
  } finally {
    await journal.close();
  }
  expect([...ledger.keys()].sort()).toEqual([...started.keys()].sort());
  for (const [id, { intent, outcome }] of ledger) {
    expect(outcome?.cost).toBe(ended.get(id));
    expect(intent.payer).toHaveLength(started.get(id) ?? -1);
  }
}

test("each call is delivered as it ended, and none is lost across commits, crashes and restarts", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 50, maxLength: 400 }),
      fc.constantFrom(0, 5, 1_000),
      async (steps, linesInMemory) => {
        const directories: string[] = [];
        try {
          await live(steps, linesInMemory, directories);
        } finally {
          for (const directory of directories) {
            await fs.rm(directory, { recursive: true, force: true });
          }
        }
      },
    ),
    // Leaves time to shrink a failure.
    { numRuns: 60, interruptAfterTimeLimit: 20_000 },
  );
});
