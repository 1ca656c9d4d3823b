import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  dataIn,
  earlierData,
  isLinked,
  migratedName,
  useData,
} from "./data-in-use.ts";

let parent: string;

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "hearth-test-"));
});
afterEach(() => rmSync(parent, { recursive: true, force: true }));

test("without a link the default directory is used, and no earlier version exists", () => {
  mkdirSync(join(parent, "postgres"));
  expect(dataIn(parent)).toBe(join(parent, "postgres"));
  expect(isLinked(parent)).toBe(false);
  expect(earlierData(parent)).toEqual([]);
});

test("of several directories the linked one is in use, the others are earlier ones", () => {
  const [first, second] = [
    migratedName("18", Date.UTC(2026, 10, 21)),
    migratedName("17", Date.UTC(2026, 10, 22)),
  ];
  for (const name of [
    "postgres",
    first,
    second,
    `${second}.making-12`,
    "notes",
  ]) {
    mkdirSync(join(parent, name));
  }
  useData(parent, first);
  useData(parent, second);
  expect(basename(dataIn(parent))).toBe(second);
  expect(earlierData(parent).map((path) => basename(path))).toEqual([
    "postgres",
    first,
  ]);
});

test("while the directory in use is missing, no other one counts as earlier", () => {
  mkdirSync(join(parent, "postgres"));
  useData(parent, migratedName("18", Date.UTC(2026, 10, 21)));
  expect(isLinked(parent)).toBe(true);
  expect(earlierData(parent)).toEqual([]);
});
