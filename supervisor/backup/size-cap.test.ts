import { linkSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Alarm } from "../alerts/alarm.ts";
import { Failure } from "../../core/failure.ts";
import { placeBackup } from "../../test/supervisor/rclone.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { listBackups, MANIFEST_NAME } from "./manifest.ts";
import {
  bytesOf,
  makeRoom,
  measureBackups,
  watchLocalSize,
} from "./size-cap.ts";

let place: ReturnType<typeof temporaryHome>;
let root: string;
beforeEach(() => {
  place = temporaryHome();
  root = place.home.backups;
});
afterEach(() => place.remove());

const put = (kind: string, day: string, bytes: number) =>
  placeBackup(join(root, kind), `2026-11-${day}T030000Z`, {
    "rows.gz": "x".repeat(bytes),
  });
const names = (kind: string) =>
  listBackups(join(root, kind)).map((name) => name.slice(8, 10));
const used = () => bytesOf(measureBackups(root));
const room = (kind: string, most: number) =>
  makeRoom(root, kind, most, Date.UTC(2026, 10, 10, 4));

test("the oldest backups of either kind are removed until a new one fits", () => {
  for (const day of ["01", "05", "10"]) {
    put("postgres", day, 10_000);
  }
  put("notes", "03", 10_000);
  put("notes", "10", 10_000);
  expect(room("postgres", 80_000)).toBe(0);
  expect(room("postgres", 45_000)).toBe(2);
  expect(names("postgres")).toEqual(["10", "05"]);
  expect(names("notes")).toEqual(["10"]);
});

test("backups at most two days older than the newest are kept; if they are too large, nothing is removed and no backup is taken", () => {
  for (const day of ["01", "09", "10"]) {
    put("postgres", day, 10_000);
  }
  put("notes", "02", 10_000);
  expect(() => room("postgres", 35_000)).toThrow(
    /those of the last two days are never removed: raise `backups: at_most`/,
  );
  expect(() => room("postgres", 1)).toThrow(Failure);
  expect(names("postgres")).toEqual(["10", "09", "01"]);
  expect(names("notes")).toEqual(["02"]);
});

test("a backup taken while the clock was ahead leaves those of the last two days protected", () => {
  for (const day of ["01", "09", "10"]) {
    put("postgres", day, 10_000);
  }
  placeBackup(join(root, "postgres"), "2027-11-10T030000Z", {
    "rows.gz": "x".repeat(10_000),
  });
  expect(() => room("postgres", 35_000)).toThrow(Failure);
  expect(names("postgres")).toHaveLength(4);
  expect(room("postgres", 45_000)).toBe(1);
  expect(listBackups(join(root, "postgres"))).toEqual([
    "2027-11-10T030000Z",
    "2026-11-10T030000Z",
    "2026-11-09T030000Z",
  ]);
});

/** A later backup with the same files. */
function link(old: string, day: string): void {
  const name = join(root, "notes", `2026-11-${day}T030000Z`);
  mkdirSync(name);
  for (const file of ["rows.gz", MANIFEST_NAME]) {
    linkSync(join(old, file), join(name, file));
  }
}

test("a file shared by two backups counts once, and is freed only with the last of them", () => {
  const old = put("notes", "01", 10_000);
  link(old, "10");
  expect(used()).toBeLessThan(11_000);
  expect(() => room("notes", 9000)).toThrow(Failure);
  expect(names("notes")).toEqual(["10", "01"]);
});

test("a file shared by two old backups is freed when both are removed", () => {
  const old = put("notes", "01", 10_000);
  link(old, "03");
  put("notes", "10", 1_000);
  expect(room("notes", 8_000)).toBe(2);
  expect(names("notes")).toEqual(["10"]);
});

test("a second backup of the notes is taken although two full ones would not fit, as it links to the first", () => {
  put("notes", "10", 10_000);
  expect(room("notes", 15_000)).toBe(0);
  expect(() => room("notes", 9000)).toThrow(Failure);
  put("postgres", "10", 10_000);
  expect(() => room("postgres", 25_000)).toThrow(Failure);
});

test("a warning is raised before the limit, and cleared when space is available again", () => {
  put("postgres", "01", 10_000);
  const raised = new Map<string, Alarm>();
  const alarms = {
    raise: (alarm: Alarm) => void raised.set(alarm.fingerprint, alarm),
    clear: (fingerprint: string) => void raised.delete(fingerprint),
  };
  watchLocalSize(alarms, root, used() / 0.79);
  expect(raised.size).toBe(0);
  watchLocalSize(alarms, root, used() / 0.81);
  expect(raised.get("backups-size")).toMatchObject({
    level: "warning",
    text: expect.stringMatching(
      /^backups on this machine take 10 kB of at most 13 kB: at the limit, the oldest are removed early/,
    ),
  });
  watchLocalSize(alarms, root, 1e9);
  expect(raised.size).toBe(0);
});
