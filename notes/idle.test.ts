import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Database } from "./database.ts";
import { watchIdle } from "./idle.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Databases of which those named `busy` have a feed. */
function open(keep: number) {
  const opened: Database[] = [];
  const watch = watchIdle({
    idleMs: 120_000,
    keep,
    opened: () => [...opened],
    close: (database) => opened.splice(opened.indexOf(database), 1),
  });
  const use = (name: string): void => {
    const known = opened.find((each) => each.name === name);
    const database =
      known ?? ({ name, isIdle: () => name !== "busy" } as Database);
    if (known === undefined) {
      opened.push(database);
    }
    watch.used(database);
  };
  const names = () => opened.map(({ name }) => name);
  return { use, names, stop: watch.stop };
}

test("a database that is not used for the idle time is closed, one with a feed stays open", () => {
  const { use, names, stop } = open(10);
  use("a");
  use("busy");
  vi.advanceTimersByTime(90_000);
  use("b");
  vi.advanceTimersByTime(60_000);
  expect(names()).toEqual(["busy", "b"]);
  vi.advanceTimersByTime(120_000);
  expect(names()).toEqual(["busy"]);
  stop();
});

test("while one vault after the other is read, only the last ones stay open", () => {
  const { use, names, stop } = open(3);
  use("busy");
  for (let vault = 1; vault <= 40; vault += 1) {
    use(`v${vault}`);
    vi.advanceTimersByTime(1000);
    // One that is used again is not the next to be closed.
    use("v1");
  }
  expect(names()).toEqual(["busy", "v1", "v39", "v40"]);
  stop();
});

test("each database stays open long enough for its maintenance in one of several rounds", () => {
  const { use, names, stop } = open(3);
  const stayed = new Set<string>();
  for (let round = 1; round <= 4; round += 1) {
    for (let vault = 1; vault <= 12; vault += 1) {
      use(`v${vault}`);
      vi.advanceTimersByTime(1000);
    }
    vi.advanceTimersByTime(90_000);
    names().forEach((name) => stayed.add(name));
    vi.advanceTimersByTime(500_000);
    expect(names()).toEqual([]);
  }
  expect(stayed.size).toBe(12);
  stop();
});

test("databases that were used a moment ago are closed later, as requests may be on their way to them", () => {
  const { use, names, stop } = open(3);
  const all = Array.from({ length: 10 }, (_each, index) => `v${index}`);
  all.forEach(use);
  expect(names()).toEqual(all);
  vi.advanceTimersByTime(30_000);
  expect(names()).toHaveLength(3);
  stop();
});
