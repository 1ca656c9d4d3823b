import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { claimDataDirectory, directoryFailure } from "./data-directory.ts";

const failing = (code: string): Error =>
  Object.assign(new Error(code), { code });

test.each([
  [
    "ENOSPC",
    "the disk that holds /data is full; free some space and start again",
  ],
  [
    "EACCES",
    "the data directory /data is not writable by this user; change its owner or set NOTES_DIR to another directory",
  ],
  [
    "EROFS",
    "the file system of the data directory /data is read-only; check the disk (dmesg), mount it writable, or set NOTES_DIR to another directory",
  ],
])("%s is reported with one message", (code, sentence) => {
  expect(directoryFailure("/data", failing(code))).toBe(sentence);
});

test("a second store leaves the first one's files untouched; unstored bodies of a previous process are removed", () => {
  const directory = mkdtempSync(join(tmpdir(), "hearth-notes-data-"));
  try {
    const first = claimDataDirectory(directory);
    const received = join(first.spool, "received");
    writeFileSync(received, "half a document");
    expect(() => claimDataDirectory(directory)).toThrow(
      "another notes store is already using the data directory",
    );
    expect(existsSync(received)).toBe(true);
    first.release();
    claimDataDirectory(directory).release();
    expect(existsSync(received)).toBe(false);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
