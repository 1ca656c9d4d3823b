import { hash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { listBackups, readManifest } from "./manifest.ts";

const NAME = "2026-11-21T030000Z";

let place: ReturnType<typeof temporaryHome>;
let backup: string;

beforeEach(() => {
  place = temporaryHome();
  backup = join(place.directory, NAME);
  mkdirSync(backup);
});
afterEach(() => place.remove());

const write = (text: string): void =>
  writeFileSync(join(backup, "manifest.json"), text);

test.each(["null", "[]", "3", '"text"', "{}"])(
  "a manifest that was replaced by %s is damaged",
  (text) => {
    write(text);
    expect(() => readManifest(backup)).toThrow(
      /manifest\.json has changed since it was written/,
    );
  },
);

test("an unchanged manifest of a newer format is not called damaged", () => {
  const manifest = { format: 2, kind: "postgres", takenAt: 0, files: [] };
  const checksum = hash("sha256", JSON.stringify(manifest));
  write(JSON.stringify({ ...manifest, checksum }));
  expect(() => readManifest(backup)).toThrow("upgrade Hearth");
});

test("a file with the name of a backup is not listed", () => {
  writeFileSync(join(place.directory, "2026-11-22T030000Z"), "");
  expect(listBackups(place.directory)).toEqual([NAME]);
});
