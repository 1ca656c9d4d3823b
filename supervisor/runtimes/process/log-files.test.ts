import {
  closeSync,
  openSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { temporaryHome } from "../../../test/supervisor/temporary-home.ts";
import { lastLines, rotate, sizeOf } from "./log-files.ts";

let place: ReturnType<typeof temporaryHome>;
let file: string;

beforeEach(() => {
  place = temporaryHome();
  file = join(place.directory, "a.log");
});
afterEach(() => place.remove());

test("the last lines of a file, of a part of it, and of a missing one are returned", () => {
  expect(lastLines(file, 5)).toEqual([]);
  writeFileSync(file, "one\ntwo\nthree\n");
  expect(lastLines(file, 2)).toEqual(["two", "three"]);
  expect(lastLines(file, 5, 4)).toEqual(["two", "three"]);
  expect(lastLines(file, 0)).toEqual([]);
});

test("a program that has the log open continues to write after a rotation", () => {
  const log = openSync(file, "a");
  writeSync(log, "old\n".repeat(10));
  expect(rotate(file, 1000)).toBe(false);
  expect(rotate(file, 10)).toBe(true);
  writeSync(log, "new\n");
  closeSync(log);
  expect(readFileSync(file, "utf8")).toBe("new\n");
  expect(sizeOf(`${file}.1`)).toBe(40);
});
