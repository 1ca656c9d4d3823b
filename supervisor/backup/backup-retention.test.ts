import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../core/duration.ts";
import { backupsToKeep } from "./backup-retention.ts";
import { backupName } from "./manifest.ts";

const rule = { daily: 7, weekly: 4, monthly: 12 };
const nights = (count: number, last: number) =>
  Array.from({ length: count }, (_, index) =>
    backupName(last - index * DAY_MS),
  );

test("of nightly backups of two years, the newest of 7 days, 4 weeks and 12 months are kept", () => {
  const last = Date.UTC(2026, 10, 21, 3);
  const kept = backupsToKeep(nights(730, last), rule, "UTC", last);
  expect([...kept].toSorted().toReversed()).toEqual(
    [
      // The last seven days; the 21st is also the newest of its week and month.
      ...["21", "20", "19", "18", "17", "16", "15"].map((d) => `2026-11-${d}`),
      // The other three weeks end on Sundays before; the 15th is one of them.
      "2026-11-08",
      "2026-11-01",
      // The last day of each of the other eleven months.
      "2026-10-31",
      "2026-09-30",
      "2026-08-31",
      "2026-07-31",
      "2026-06-30",
      "2026-05-31",
      "2026-04-30",
      "2026-03-31",
      "2026-02-28",
      "2026-01-31",
      "2025-12-31",
    ].map((date) => `${date}T030000Z`),
  );
});

test("of several backups of one day the newest is kept, and those of the last two days are never removed", () => {
  const at = Date.UTC(2026, 10, 21, 3);
  const today = [at, at + HOUR_MS, at + 9 * HOUR_MS].map(backupName);
  const fiveDaysAgo = [at - 5 * DAY_MS, at - 5 * DAY_MS + HOUR_MS].map(
    backupName,
  );
  const now = at + 10 * HOUR_MS;
  expect(backupsToKeep([...today, ...fiveDaysAgo], rule, "UTC", now)).toEqual(
    new Set([...today, fiveDaysAgo[1]]),
  );
});

test("days without a backup do not count: old backups are kept when backups stop", () => {
  const last = Date.UTC(2026, 10, 21, 3);
  const names = [0, 40, 41, 300].map((days) =>
    backupName(last - days * DAY_MS),
  );
  expect(backupsToKeep(names, rule, "UTC", last + 9 * DAY_MS).size).toBe(4);
});

test("days are those of the operator's zone", () => {
  const names = ["2026-11-20T233000Z", "2026-11-21T003000Z"];
  const later = "2026-11-25T030000Z";
  const daily = { daily: 7, weekly: 0, monthly: 0 };
  const keptIn = (timeZone: string) =>
    backupsToKeep(
      [...names, later],
      daily,
      timeZone,
      Date.UTC(2026, 10, 25, 4),
    );
  expect(keptIn("UTC").size).toBe(3);
  expect(keptIn("Europe/Berlin")).toEqual(
    new Set(["2026-11-21T003000Z", later]),
  );
});

test("backups taken while the clock was ahead are kept, and displace no other", () => {
  const last = Date.UTC(2026, 10, 21, 3);
  const ahead = nights(10, last + 365 * DAY_MS);
  const right = nights(14, last);
  const sameDay = backupName(last - DAY_MS + HOUR_MS);
  const kept = (names: readonly string[]) =>
    backupsToKeep(names, rule, "UTC", last);
  expect(kept([...ahead, ...right, sameDay])).toEqual(
    new Set([...ahead, ...kept([...right, sameDay])]),
  );
});
