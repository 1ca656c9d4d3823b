import {
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { syncTree } from "./durable-file.ts";

/** What was flushed: a lost write cannot be seen without a power failure. */
const synced: string[] = [];

vi.mock("node:fs/promises", async (original) => {
  const real = await original<{ readonly open: typeof open }>();
  return {
    ...real,
    open: async (path: string, flags: string) => {
      const file = await real.open(path, flags);
      vi.spyOn(file, "sync").mockImplementation(async () => {
        synced.push(path);
      });
      return file;
    },
  };
});

const directory = mkdtempSync(join(tmpdir(), "hearth-sync-"));
afterEach(() => rmSync(directory, { recursive: true }));

test("every file and directory of a tree is flushed, and what links point to is not", async () => {
  mkdirSync(join(directory, "a", "b"), { recursive: true });
  writeFileSync(join(directory, "a", "b", "file"), "content");
  writeFileSync(join(directory, "other"), "");
  symlinkSync("/dev/null", join(directory, "link"));
  symlinkSync("missing", join(directory, "broken"));
  await syncTree(directory);
  expect(synced.toSorted()).toEqual(
    ["", "a", "a/b", "a/b/file", "other"].map((path) => join(directory, path)),
  );
});
