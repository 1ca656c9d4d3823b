import { randomBytes } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { freeBytesOf } from "../../core/free-bytes.ts";
import { beginBackup, writeCompressed } from "./backup-files.ts";

vi.mock("../../core/free-bytes.ts");

let place: ReturnType<typeof temporaryHome>;

beforeEach(() => {
  place = temporaryHome();
});
afterEach(() => place.remove());

test("a backup is stopped before it fills the disk", async () => {
  const parent = join(place.directory, "notes");
  const free = vi.mocked(freeBytesOf).mockReturnValue(80e6);
  const making = beginBackup(parent, "2026-11-20T030000Z", 0);
  let written = 0;
  const content = function* () {
    for (; written < 1000; written += 1) {
      free.mockReturnValue(80e6 - written * 1e6);
      yield randomBytes(1e6);
    }
  };
  const { signal } = new AbortController();
  await expect(
    writeCompressed(making.directory, "a.gz", Readable.from(content()), signal),
  ).rejects.toThrow(
    /has only .* left, so the backup was stopped: free some space, or keep fewer backups \(`jobs: notes_backup: keep`\)/,
  );
  expect(written).toBeLessThan(80);
  making.abandon();
  expect(readdirSync(parent)).toEqual([]);
});
