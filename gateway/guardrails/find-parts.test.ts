import { expect, test, vi } from "vitest";
import type { GuardrailCheck } from "../config/types.ts";
import { TimedWorker, TooBusy, TooSlow } from "../timed-worker.ts";
import { findAll, findParts, type SearchTask } from "./find-parts.ts";
import type { Checking, Finding } from "./guard.ts";
import { checkingOf } from "./open-guard.ts";

type Local = Extract<Checking, { kind: "local" }>;

/** Takes time by the square of a text of `x`. */
const SLOW = "x.*y|x";
const SECRET = `ghp_${"16C7e42F292c6912E7710c838347Ae178B4a"}`;

const patterns = (source: string): GuardrailCheck => ({
  kind: "patterns",
  patterns: [
    { name: "p", source, isWord: false, action: "mask", replacement: "*" },
  ],
});

test.each([
  ["patterns", patterns(SECRET)],
  ["secrets", { kind: "secrets", action: "block" } as const],
])("%s are found in long texts as in short ones", async (_what, check) => {
  const checking = checkingOf(check) as Local;
  const texts = ["é ".repeat(100_000) + SECRET, "none", SECRET];
  const from = [10, 0, 0];
  const found = await findParts(check, checking, texts, from);
  expect(found).toEqual(
    await findAll(
      checking,
      texts.map((text, at) => ({ text, from: from[at] ?? 0 })),
    ),
  );
  expect(found).toMatchObject([
    [{ start: 200_000, end: 200_040 }],
    [],
    [{ start: 0, end: 40 }],
  ]);
});

test("expressions are looked for on the main thread in short texts only, words in longer ones too", async () => {
  const find = vi.fn<Local["find"]>(async () => []);
  const search = async (check: GuardrailCheck, length: number) => {
    find.mockClear();
    await findParts(check, { kind: "local", find }, ["x".repeat(length)], []);
    return find.mock.calls.length > 0;
  };
  const expression = patterns("a+");
  const [one] = expression.kind === "patterns" ? expression.patterns : [];
  const word = { ...one!, isWord: true };
  const of = (...all: readonly (typeof word)[]): GuardrailCheck => ({
    kind: "patterns",
    patterns: all,
  });
  expect(await search(of(one!), 4_000)).toBe(true);
  expect(await search(of(one!), 4_001)).toBe(false);
  expect(await search(of(one!, one!, word), 2_000)).toBe(true);
  expect(await search(of(one!, one!, word), 2_001)).toBe(false);
  expect(await search(of(word, word), 100_000)).toBe(true);
  expect(await search(of(word), 100_001)).toBe(false);
});

test("a search that takes too long is ended, and the next one succeeds", async () => {
  const worker = new TimedWorker<SearchTask, readonly (readonly Finding[])[]>(
    new URL("./find-parts-worker.ts", import.meta.url),
    { maxMs: 500, maxWaitMs: 60_000, maxHeapMb: 256 },
  );
  const search = (text: string) =>
    worker.run({
      check: patterns(SLOW),
      texts: [{ text, from: 0 }],
    });
  const slow = search("x".repeat(1_000_000));
  const quick = search("x");
  await expect(slow).rejects.toBeInstanceOf(TooSlow);
  expect(await quick).toMatchObject([[{ start: 0, end: 1 }]]);
});

test("a search that waits too long for the ones before it is not started, and the next one succeeds", async () => {
  const worker = new TimedWorker<SearchTask, readonly (readonly Finding[])[]>(
    new URL("./find-parts-worker.ts", import.meta.url),
    { maxMs: 1_000, maxWaitMs: 500, maxHeapMb: 256 },
  );
  const search = (text: string) =>
    worker.run({ check: patterns(SLOW), texts: [{ text, from: 0 }] });
  const slow = search("x".repeat(1_000_000));
  const waiting = search("x");
  await expect(slow).rejects.toBeInstanceOf(TooSlow);
  await expect(waiting).rejects.toBeInstanceOf(TooBusy);
  expect(await search("x")).toMatchObject([[{ start: 0, end: 1 }]]);
});
