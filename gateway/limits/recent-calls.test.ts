import { expect, it } from "vitest";
import { RecentCalls } from "./recent-calls.ts";

it("keeps the calls of its time, and those of a quarter more at most", () => {
  const calls = new RecentCalls(8_000);
  for (let at = 0; at <= 100_000; at += 100) {
    calls.add(`call at ${at}`, at);
    const times = [...calls.ids()].map((id) => Number(id.slice(8)));
    expect(Math.min(...times)).toBeLessThanOrEqual(Math.max(0, at - 8_000));
    expect(Math.min(...times)).toBeGreaterThan(at - 10_000);
    expect(times.length).toBe((at - Math.min(...times)) / 100 + 1);
  }
});

it("keeps a call once", () => {
  const calls = new RecentCalls(8_000);
  calls.add("a", 0);
  calls.add("a", 1);
  expect([...calls.ids()]).toEqual(["a"]);
});

it("takes over older calls as of their time", () => {
  const older = new RecentCalls(8_000);
  older.add("old", 0);
  const calls = new RecentCalls(8_000);
  calls.add("new", 5_000);
  calls.putBefore(older);
  expect([...calls.ids()]).toEqual(["old", "new"]);
  calls.add("newer", 10_000);
  expect([...calls.ids()]).toEqual(["new", "newer"]);
});
