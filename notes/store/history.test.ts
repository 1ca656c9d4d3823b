import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../core/duration.ts";
import type { Answer } from "./answer.ts";
import { edit, replicate } from "./change-document.ts";
import { compact } from "./compaction.ts";
import { history } from "./history.ts";
import { readDocument } from "./incoming.ts";
import { firstKeptInstant, keptInstant } from "./kept-instants.ts";
import { inTransaction, openStore, type Store } from "./store.ts";
import { thinHistory } from "./thin-history.ts";
import { waitFor } from "../../test/wait-for.ts";

const START = Date.UTC(2026, 0, 5, 9, 0, 0);

let directory: string;
let store: Store;

const open = (historyMaxBytes?: number): Store =>
  openStore(
    {
      name: "vault",
      file: join(directory, "vault.sqlite"),
      kind: "vault",
      instanceStartTime: "1",
      spoolDirectory: directory,
      passwordIterations: 1,
      ...(historyMaxBytes === undefined ? {} : { historyMaxBytes }),
    },
    () => undefined,
  );

const close = (): void => {
  store.reader.close();
  store.writer.close();
};

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: START });
  directory = mkdtempSync(join(tmpdir(), "hearth-history-"));
  store = open();
});

afterEach(() => {
  close();
  rmSync(directory, { recursive: true });
  vi.useRealTimers();
});

interface Listed {
  readonly since: number;
  readonly until: number | null;
  readonly doc: Readonly<Record<string, unknown>>;
}

function read(
  query: Readonly<Record<string, string>>,
  body?: unknown,
): {
  at?: number;
  next?: string | null;
  from?: number;
  versions?: number;
  bytes?: number;
  rows: Listed[];
} {
  const answer: Answer = history(store, {
    operation: "history",
    query,
    maxDocumentSize: 1,
    ...(body === undefined
      ? {}
      : {
          body: { kind: "memory", bytes: Buffer.from(JSON.stringify(body)) },
        }),
  });
  const text =
    "body" in answer
      ? answer.body
      : [...answer.pieces]
          .map((piece) =>
            typeof piece === "string" ? piece : Buffer.from(piece).toString(),
          )
          .join("");
  return JSON.parse(text) as ReturnType<typeof read>;
}

const put = async (
  id: string,
  document: Readonly<Record<string, unknown>>,
  rev?: string,
): Promise<string> =>
  await inTransaction(store, () =>
    edit(
      store,
      id,
      readDocument(
        Buffer.from(
          JSON.stringify({
            ...(rev === undefined ? {} : { _rev: rev }),
            ...document,
          }),
        ),
      ),
    ),
  );

const note = (text: string): Record<string, unknown> => ({
  type: "plain",
  path: "note.md",
  children: [`h:${text}`],
});

async function compactNow(): Promise<void> {
  compact(store);
  await waitFor("the end of the compaction", () => !store.compacting);
}

const childrenAt = (at: number): Record<string, unknown> =>
  Object.fromEntries(
    read({ at: String(at) }).rows.map(({ doc }) => [doc._id, doc.children]),
  );

test("a note can be read as of any minute of the last day, compacted or not", async () => {
  const first = await put("note.md", note("one"));
  vi.setSystemTime(START + 10 * MINUTE_MS);
  const second = await put("note.md", note("two"), first);
  vi.setSystemTime(START + 20 * MINUTE_MS);
  await inTransaction(store, () =>
    edit(
      store,
      "note.md",
      readDocument(
        Buffer.from(JSON.stringify({ _rev: second, _deleted: true })),
      ),
    ),
  );
  vi.setSystemTime(START + 30 * MINUTE_MS);
  for (const compacted of [false, true]) {
    if (compacted) {
      await compactNow();
    }
    expect(childrenAt(START + 9 * MINUTE_MS)).toEqual({ "note.md": ["h:one"] });
    expect(childrenAt(START + 19 * MINUTE_MS)).toEqual({
      "note.md": ["h:two"],
    });
    expect(childrenAt(START + 21 * MINUTE_MS)).toEqual({});
  }
  expect(
    read({ id: "note.md" }).rows.map(({ since, until, doc }) => [
      since - START,
      until! - START,
      doc._rev,
    ]),
  ).toEqual([
    [10 * MINUTE_MS, 20 * MINUTE_MS, second],
    [0, 10 * MINUTE_MS, first],
  ]);
});

test("times before the start and invalid ones are rejected with the allowed values", () => {
  vi.setSystemTime(START + HOUR_MS);
  expect(() => read({ at: String(START - 1) })).toThrow(
    "The history goes back to 2026-01-05T09:00:00.000Z.",
  );
  expect(() => read({ at: "yesterday" })).toThrow("`at` must be a time");
  expect(() => read({ id: "nothing" })).toThrow("missing");
});

test("of two versions in conflict, the winner at that time is shown", async () => {
  const write = async (rev: string, text: string): Promise<void> => {
    await inTransaction(store, () =>
      replicate(
        store,
        "note.md",
        readDocument(Buffer.from(JSON.stringify({ _rev: rev, ...note(text) }))),
      ),
    );
  };
  await write(`1-${"a".repeat(32)}`, "low");
  vi.setSystemTime(START + HOUR_MS);
  await write(`1-${"b".repeat(32)}`, "high");
  vi.setSystemTime(START + 2 * HOUR_MS);
  expect(childrenAt(START + 1)).toEqual({ "note.md": ["h:low"] });
  expect(childrenAt(START + HOUR_MS)).toEqual({ "note.md": ["h:high"] });
});

test("a chunk that was deleted can still be read, compacted or not", async () => {
  const rev = await put("h:one", { type: "leaf", data: "text" });
  vi.setSystemTime(START + HOUR_MS);
  await put("h:one", { _deleted: true }, rev);
  for (const compacted of [false, true]) {
    if (compacted) {
      await compactNow();
    }
    const { rows } = read({}, { chunks: ["h:one", "h:two"] }) as unknown as {
      rows: Record<string, unknown>[];
    };
    expect(rows).toMatchObject([{ _id: "h:one", data: "text" }]);
  }
});

test("above its limit the oldest versions are dropped, and the remaining states are complete", async () => {
  close();
  store = open(2000);
  let rev: string | undefined;
  for (let hour = 0; hour < 20; hour += 1) {
    vi.setSystemTime(START + hour * HOUR_MS);
    rev = await put("note.md", note(`${hour}${"x".repeat(200)}`), rev);
  }
  await thinHistory(store);
  const { from, bytes } = read({});
  expect(bytes).toBeLessThanOrEqual(2000);
  expect(from).toBeGreaterThan(START);
  for (let hour = 0; hour < 20; hour += 1) {
    const at = START + hour * HOUR_MS;
    if (at < from!) {
      expect(() => childrenAt(at)).toThrow("goes back to");
    } else {
      expect(childrenAt(at)).toEqual({
        "note.md": [`h:${hour}${"x".repeat(200)}`],
      });
    }
  }
});

test("a clock that is a year ahead for one run drops no version", async () => {
  let rev: string | undefined;
  for (let minute = 0; minute < 60; minute += 10) {
    vi.setSystemTime(START + minute * MINUTE_MS);
    rev = await put("note.md", note(`${minute}`), rev);
  }
  // Wrong from the start of the machine on: the store does not see the jump.
  close();
  vi.setSystemTime(START + 400 * DAY_MS);
  store = open();
  await thinHistory(store);
  await put("other.md", note("meanwhile"));
  await compactNow();
  vi.setSystemTime(START + 2 * HOUR_MS);
  await thinHistory(store);
  for (let minute = 0; minute < 60; minute += 10) {
    expect(childrenAt(START + minute * MINUTE_MS)).toEqual({
      "note.md": [`h:${minute}`],
    });
  }
});

test("after a month without runs the second run thins what is a month old", async () => {
  let rev: string | undefined;
  for (let minute = 0; minute < 60; minute += 10) {
    vi.setSystemTime(START + minute * MINUTE_MS);
    rev = await put("note.md", note(`${minute}`), rev);
  }
  vi.setSystemTime(START + 30 * DAY_MS);
  await thinHistory(store);
  expect(read({}).versions).toBe(5);
  vi.setSystemTime(Date.now() + HOUR_MS);
  await thinHistory(store);
  // No midnight is among the times at which they were current.
  expect(read({}).versions).toBe(0);
});

test("writes of an earlier release are not part of the history", async () => {
  const rev = await put("note.md", note("one"));
  vi.setSystemTime(START + HOUR_MS);
  await put("note.md", note("two"), rev);
  // An earlier release writes every counter except this one.
  store.writer.exec("UPDATE totals SET update_seq = update_seq + 1");
  close();
  vi.setSystemTime(START + 2 * HOUR_MS);
  store = open();
  expect(() => childrenAt(START + 90 * MINUTE_MS)).toThrow("goes back to");
  expect(childrenAt(START + 2 * HOUR_MS)).toEqual({ "note.md": ["h:two"] });
});

test("after half a year of random edits, compactions and restarts every kept instant reads as written", async () => {
  let seed = 22;
  const random = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((seed / 2_147_483_648) * below);
  };
  const revs = new Map<string, string>();
  const present = new Map<string, string>();
  const log: { at: number; state: ReadonlyMap<string, string> }[] = [
    { at: START, state: new Map() },
  ];
  let now = START;
  for (let step = 0; step < 600; step += 1) {
    now += random(step % 3 === 0 ? 2 * DAY_MS : 3 * HOUR_MS) + 1;
    vi.setSystemTime(now);
    const id = `note-${random(12)}.md`;
    if (random(6) === 0 && present.has(id)) {
      await put(id, { _deleted: true }, revs.get(id));
      revs.delete(id);
      present.delete(id);
    } else {
      revs.set(id, await put(id, note(String(step)), revs.get(id)));
      present.set(id, `h:${step}`);
    }
    log.push({ at: now, state: new Map(present) });
    if (random(40) === 0) {
      await compactNow();
    }
    if (random(60) === 0) {
      await thinHistory(store);
    }
    if (random(60) === 0) {
      close();
      store = open();
    }
  }
  await compactNow();
  expect(now - START).toBeGreaterThan(24 * 7 * DAY_MS);
  const first = firstKeptInstant(START, now);
  for (let probe = 0; probe < 300; probe += 1) {
    const wanted = now - random(probe % 2 === 0 ? now - first : 2 * DAY_MS);
    const instant = keptInstant(wanted, now);
    if (instant < first) {
      continue;
    }
    const { at, rows } = read({ at: String(wanted) });
    expect(at).toBe(instant);
    const expected = log.findLast((entry) => entry.at <= instant)!.state;
    expect(
      new Map(
        rows.map(({ doc }) => [
          doc._id as string,
          (doc.children as string[])[0],
        ]),
      ),
    ).toEqual(expected);
  }
  // Thinned: fewer versions than were written.
  expect(read({}).versions).toBeLessThan(log.length * 0.7);
});
