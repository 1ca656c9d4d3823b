import { mkdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { HOUR_MS } from "../../../core/duration.ts";
import { backupName, writeManifest } from "../../backup/manifest.ts";
import { temporaryHome } from "../../../test/supervisor/temporary-home.ts";
import { probeCheck } from "../../../test/supervisor/probe-check.ts";
import { sizeWords } from "../../../core/size.ts";
import { sizeOf } from "../../backup/backup-files.ts";

let place: ReturnType<typeof temporaryHome>;
let directory: string;

beforeEach(() => {
  place = temporaryHome();
  directory = join(place.directory, "postgres");
});
afterEach(() => place.remove());

const probe = (
  more: Readonly<Record<string, unknown>> = {},
  watchedSince: number = Date.now() - 100 * HOUR_MS,
) => probeCheck({ kind: "backup", directory, ...more }, { watchedSince });

/** A complete Hearth backup with an age in hours and one file of a size. */
function back(hoursAgo: number, bytes: number): string {
  const takenAt = Date.now() - hoursAgo * HOUR_MS;
  const path = join(directory, backupName(takenAt));
  mkdirSync(path, { recursive: true });
  const content = "x".repeat(bytes);
  writeFileSync(join(path, "rows.gz"), content);
  const files = [{ name: "rows.gz", bytes, sha256: "0".repeat(64) }];
  writeManifest(path, { format: 1, kind: "postgres", takenAt, files });
  return path;
}

test("a backup is required only after the first one is due", async () => {
  expect((await probe({}, Date.now() - HOUR_MS)).ok).toBe(true);
  expect(await probe()).toMatchObject({
    ok: false,
    level: "warning",
    text: expect.stringMatching(/^no backup in /),
  });
});

test("a recent backup is ok, an old one a warning", async () => {
  back(30, 10_000);
  expect((await probe()).text).toMatch(/^no backup is younger than 1 d 2 h; /);
  back(2, 10_000);
  const result = await probe();
  expect(result.ok).toBe(true);
  expect(result.text).toMatch(/2 h old, 10 kB$/);
});

test("its size is the one that lists of backups show", async () => {
  const path = back(2, 10_400);
  expect(sizeWords(sizeOf(path))).toBe("11 kB");
  expect((await probe()).text).toMatch(/2 h old, 11 kB$/);
});

test("a backup taken while the clock was ahead is not a recent one", async () => {
  back(-365 * 24, 10_000);
  expect(await probe()).toMatchObject({
    ok: false,
    level: "warning",
    text: expect.stringMatching(
      /^no backup is younger than 1 d 2 h; \S+Z, 36\d d .*ahead of the clock, 10 kB$/,
    ) as string,
  });
  back(2, 10_000);
  expect((await probe()).text).toMatch(/Z, 2 h old, 10 kB$/);
});

test("a backup of less than half the size is a warning", async () => {
  back(26, 10_000);
  back(2, 4_000);
  expect(await probe()).toMatchObject({ ok: false, level: "warning" });
});

test("a truncated backup, or one without a file, does not count", async () => {
  const path = back(2, 10_000);
  writeFileSync(join(path, "rows.gz"), "x");
  expect(await probe()).toMatchObject({ ok: false, level: "down" });
  expect((await probe()).text).toContain("has 1 bytes");
  rmSync(join(path, "rows.gz"));
  expect((await probe()).ok).toBe(false);
});

test("of other programs' backups the newest file counts", async () => {
  mkdirSync(directory);
  for (const [name, hoursAgo] of [
    ["monday.tar", 50],
    ["tuesday.tar", 3],
  ] as const) {
    writeFileSync(join(directory, name), "content");
    const at = Date.now() / 1000 - hoursAgo * 3600;
    utimesSync(join(directory, name), at, at);
  }
  expect((await probe()).text).toMatch(/^tuesday.tar, 3 h old/);
  const wrong = Date.now() / 1000 + 30 * 24 * 3600;
  writeFileSync(join(directory, "ahead.tar"), "content");
  utimesSync(join(directory, "ahead.tar"), wrong, wrong);
  expect((await probe()).text).toMatch(/^tuesday.tar, 3 h old/);
  expect((await probe({ expect: { bytes_above: 7 } })).ok).toBe(false);
});
