import { expect, test } from "vitest";
import { directoryFailure } from "./data-directory.ts";

const failing = (code: string): Error =>
  Object.assign(new Error(code), { code });

test.each([
  [
    "ENOSPC",
    "the disk that holds /data is full; free some space and start again",
  ],
  [
    "EACCES",
    "the data directory /data is not writable for this user; change its owner or set NOTES_DIR to another one",
  ],
  [
    "EROFS",
    "the data directory /data is not writable for this user; change its owner or set NOTES_DIR to another one",
  ],
])("%s is said in one sentence", (code, sentence) => {
  expect(directoryFailure("/data", failing(code))).toBe(sentence);
});
