import { expect, test } from "vitest";
import { openReadCache, StillReading } from "./read-cache.ts";

const limits = { freshMs: 100, staleMs: 1000 };

/** A manual clock, and a read with preset results. */
function testbed() {
  let at = 1_000_000;
  const answers: (() => Promise<number>)[] = [];
  let readings = 0;
  const cache = openReadCache(() => at);
  return {
    pass: (ms: number) => {
      at += ms;
    },
    answer: (next: () => Promise<number>) => answers.push(next),
    readings: () => readings,
    ask: () =>
      cache("sum", limits, () => {
        readings += 1;
        return (answers.shift() ?? (() => Promise.reject(new Error("none"))))();
      }),
  };
}

test("a fresh value is not read again, an old one is served during a refresh, an expired one is awaited", async () => {
  const { ask, answer, pass, readings } = testbed();
  for (const value of [1, 2, 3]) {
    answer(async () => value);
  }
  expect((await ask()).value).toBe(1);
  pass(99);
  expect((await ask()).value).toBe(1);
  expect(readings()).toBe(1);
  pass(1);
  expect((await ask()).value).toBe(1);
  expect(readings()).toBe(2);
  await Promise.resolve();
  pass(1000);
  expect((await ask()).value).toBe(3);
});

test("a failed refresh serves the old value with the reason, and is retried after a delay", async () => {
  const { ask, answer, pass, readings } = testbed();
  answer(async () => 1);
  await ask();
  pass(1000);
  answer(() => Promise.reject(new Error("connection refused")));
  expect(await ask()).toMatchObject({
    value: 1,
    trouble: "connection refused",
  });
  expect(await ask()).toMatchObject({
    value: 1,
    trouble: "connection refused",
  });
  expect(readings()).toBe(2);
  pass(3000);
  answer(async () => 2);
  expect(await ask()).toMatchObject({ value: 2, trouble: null });
});

test("a value that was never read gives the reason, or that reading takes time", async () => {
  const { ask, answer } = testbed();
  answer(() => Promise.reject(new Error("connection refused")));
  await expect(ask()).rejects.toThrow("connection refused");
  const slow = testbed();
  slow.answer(() => new Promise(() => {}));
  await expect(slow.ask()).rejects.toBeInstanceOf(StillReading);
});

test("concurrent requests cause one read", async () => {
  const { ask, answer, readings } = testbed();
  answer(async () => 7);
  const all = await Promise.all([ask(), ask(), ask()]);
  expect(all.map(({ value }) => value)).toEqual([7, 7, 7]);
  expect(readings()).toBe(1);
});

test("a clock that is set back neither keeps an old value nor delays the next read", async () => {
  const { ask, answer, pass } = testbed();
  answer(async () => 1);
  await ask();
  pass(100);
  answer(() => Promise.reject(new Error("connection refused")));
  await ask();
  await Promise.resolve();
  pass(-3_600_000);
  answer(async () => 2);
  expect(await ask()).toMatchObject({ value: 2, trouble: null });
});
