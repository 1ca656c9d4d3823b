import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  RELEASE_FILE,
  linkedRelease,
  listReleases,
  pointTo,
  readRelease,
  releaseDirectory,
} from "./release.ts";

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "hearth-release-"));
});

afterEach(() => {
  rmSync(root, { recursive: true });
});

test.each([
  ["empty", ""],
  ["cut off", '{"id": "1.0.0-0123'],
  ["without its fields", "{}"],
])("a release whose description is %s counts as incomplete", (_how, text) => {
  const directory = releaseDirectory({ root }, "1.0.0-0123456789");
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, RELEASE_FILE), text);
  pointTo({ root }, "current", "1.0.0-0123456789");
  expect(readRelease(directory)).toBeUndefined();
  expect(linkedRelease({ root }, "current")).toBeUndefined();
  expect(listReleases({ root })).toEqual([]);
});
