import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { HOUR_MS } from "./duration.ts";
import { writeDurably } from "./durable-file.ts";
import { temporaryHome } from "../test/supervisor/temporary-home.ts";

let place: ReturnType<typeof temporaryHome>;

beforeEach(() => {
  place = temporaryHome();
});
afterEach(() => place.remove());

test("a failed write keeps the old file and leaves no temporary file", () => {
  const path = join(place.directory, "secrets.json");
  writeDurably(path, "the old one");
  const script = `
    const { writeDurably } = await import(process.env.MODULE);
    try { writeDurably(process.env.FILE, "x".repeat(100_000)); console.log("written"); }
    catch (error) { console.log(error.code); }`;
  // A limit on file sizes simulates a disk that is almost full: the first part is written, the rest fails.
  const output = execFileSync(
    "sh",
    ["-c", 'ulimit -f 8; exec "$0" --input-type=module -e "$1"'].concat([
      process.execPath,
      script,
    ]),
    {
      env: {
        ...process.env,
        MODULE: pathToFileURL(join(import.meta.dirname, "durable-file.ts"))
          .href,
        FILE: path,
      },
      encoding: "utf8",
    },
  );
  expect(output.trim()).toBe("EFBIG");
  expect(readFileSync(path, "utf8")).toBe("the old one");
  expect(readdirSync(place.directory)).toContain("secrets.json");
  expect(
    readdirSync(place.directory).filter((name) => name.endsWith(".next")),
  ).toEqual([]);
});

test("what killed processes left of a file is removed by its next write, and what may still be written stays", () => {
  const path = join(place.directory, "secrets.json");
  const names = ["secrets.json.1.next", "secrets.json.2.next", "other.1.next"];
  const [old = "", fresh = "", other = ""] = names.map((name) =>
    join(place.directory, name),
  );
  for (const file of [old, fresh, other]) {
    writeFileSync(file, "a part");
  }
  const longAgo = new Date(Date.now() - 2 * HOUR_MS);
  utimesSync(old, longAgo, longAgo);
  utimesSync(other, longAgo, longAgo);
  writeDurably(path, "whole");
  expect(
    readdirSync(place.directory).filter((name) => name.endsWith(".next")),
  ).toEqual(["other.1.next", "secrets.json.2.next"]);
});
