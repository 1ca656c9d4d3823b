import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { journalOf, removedJournals } from "./journals.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-journals-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

test("the first worker has the journal of a gateway without workers", () => {
  expect(journalOf("/journal", 1)).toBe("/journal");
  expect(journalOf("/journal", 2)).toBe("/journal/worker-2");
});

test("journals of workers that are no longer configured are found", async () => {
  for (const name of ["worker-2", "worker-3", "worker-10", "worker-x"]) {
    mkdirSync(join(directory, name));
  }
  writeFileSync(join(directory, "instance"), "");
  const left = async (workers: number) =>
    (await removedJournals(directory, workers)).toSorted();
  expect(await left(1)).toEqual(
    ["worker-10", "worker-2", "worker-3"].map((name) => join(directory, name)),
  );
  expect(await left(3)).toEqual([join(directory, "worker-10")]);
  expect(await left(10)).toEqual([]);
  expect(await removedJournals(join(directory, "missing"), 1)).toEqual([]);
});
