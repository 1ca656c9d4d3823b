import { expect, test } from "vitest";
import { HOUR_MS } from "../../core/duration.ts";
import { DatabaseUnavailable } from "../database/pool.ts";
import { Lookup } from "./lookup.ts";

test("60,000 unknown ids evict no known id, and few of them are kept", async () => {
  let away = false;
  const lookup = new Lookup({
    keepMs: HOUR_MS,
    load: (id) => {
      if (away) {
        return Promise.reject(new DatabaseUnavailable("away"));
      }
      return Promise.resolve(id === "known" ? { id } : null);
    },
  });
  await lookup.find("known");
  for (let guess = 0; guess < 60_000; guess++) {
    await lookup.find(`guess-${guess}`);
  }
  away = true;
  expect(lookup.peek("known")).toEqual({ id: "known" });
  expect(lookup.recall("guess-0")).toBeUndefined();
  expect(lookup.recall("guess-59999")).toBeNull();
});

test("large rows take the place of many others, so that all together stay within the memory for 50,000", async () => {
  const lookup = new Lookup({
    keepMs: HOUR_MS,
    load: (id) => Promise.resolve(id.padEnd(30 * 1024 * 1024)),
  });
  for (const id of ["1", "2", "3", "4"]) {
    await lookup.find(id);
  }
  expect(lookup.recall("1")).toBeUndefined();
  for (const id of ["2", "3", "4"]) {
    expect(lookup.recall(id)).toContain(id);
  }
});

test("a created or deleted row moves between the two caches", async () => {
  let row: string | null = "row";
  const lookup = new Lookup({
    keepMs: HOUR_MS,
    load: () => Promise.resolve(row),
  });
  expect(await lookup.find("id")).toBe("row");
  for (const next of [null, "again"]) {
    row = next;
    lookup.invalidate((_, id) => id === "id");
    expect(lookup.peek("id")).toBeUndefined();
    expect(await lookup.find("id")).toBe(next);
  }
});

test("after the clock was set back, known rows are looked up again, also during an outage", async () => {
  let now = 10 * HOUR_MS;
  let away = false;
  const loads: string[] = [];
  const lookup = new Lookup({
    keepMs: HOUR_MS,
    now: () => now,
    load: (id) => {
      loads.push(id);
      return away
        ? Promise.reject(new DatabaseUnavailable("away"))
        : Promise.resolve({ id });
    },
  });
  await lookup.find("known");
  now -= HOUR_MS;
  expect(lookup.peek("known")).toBeUndefined();
  away = true;
  await expect(lookup.find("other")).rejects.toThrow(DatabaseUnavailable);
  now -= HOUR_MS;
  loads.length = 0;
  expect(await lookup.find("known")).toEqual({ id: "known" });
  expect(loads).toEqual(["known"]);
});
