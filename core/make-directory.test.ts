import {
  existsSync,
  mkdtempSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeDirectory } from "./make-directory.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-directory-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

test("all missing directories are created, once", () => {
  const path = join(directory, "a", "b", "c");
  makeDirectory(path, 0o700);
  makeDirectory(path, 0o700);
  expect(statSync(join(directory, "a")).mode & 0o777).toBe(0o700);
  expect(existsSync(path)).toBe(true);
});

test("a file at or above the path is an error", () => {
  writeFileSync(join(directory, "file"), "");
  for (const [path, code] of [
    [join(directory, "file"), "EEXIST"],
    [join(directory, "file", "a"), "ENOTDIR"],
    [join(directory, "file", "a", "b"), "ENOTDIR"],
  ] as const) {
    expect(() => makeDirectory(path, 0o700)).toThrow(
      expect.objectContaining({ code }),
    );
  }
});

test.runIf(process.platform === "linux")(
  "below /proc, where nothing can be created, it is an error",
  () => {
    for (const path of ["/proc/hearth", "/proc/hearth/a/b"]) {
      expect(() => makeDirectory(path, 0o700)).toThrow(
        expect.objectContaining({ code: "ENOENT" }),
      );
    }
  },
);
