import { mkdirSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HOUR_MS } from "../../../core/duration.ts";
import type { JobView, RunView } from "../../../supervisor/jobs/runner.ts";
import { writeSampleBackup } from "../../../test/supervisor/sample-backup.ts";
import { temporaryHome } from "../../../test/supervisor/temporary-home.ts";
import { readBackups } from "./backup-reader.ts";
import {
  backupsHeading,
  viewBackups,
  type BackupsFacts,
} from "./backups-view.ts";

const NEWEST = "2026-11-21T030000Z";
const OLDER = "2026-11-20T030000Z";
const now = Date.UTC(2026, 10, 21, 10);

let place: ReturnType<typeof temporaryHome>;

beforeEach(() => {
  place = temporaryHome();
});
afterEach(() => place.remove());

function run(change: Partial<RunView>): RunView {
  return {
    id: 7,
    job: "restore-drill",
    due: null,
    askedBy: null,
    caughtUp: false,
    startedAt: now - HOUR_MS,
    endedAt: now - HOUR_MS,
    status: "done",
    attempts: 1,
    text: "it restores.",
    details: null,
    progress: null,
    ...change,
  };
}

function job(name: string, last: RunView | null = null): JobView {
  return {
    name,
    description: `Does ${name}.`,
    cron: null,
    timeZone: "UTC",
    nextAt: null,
    running: null,
    last,
  };
}

function jobsWith(...drills: readonly RunView[]) {
  return {
    list: () => [job("postgres-backup"), job("restore-drill", drills[0])],
    runsOf: () => drills,
  };
}

function factsOf(change: Partial<BackupsFacts> = {}): BackupsFacts {
  return {
    backups: [],
    jobs: [],
    offsiteTarget: null,
    offsiteWarning: undefined,
    hasPeer: false,
    hearth: "npx hearth",
    now,
    timeZone: "UTC",
    ...change,
  };
}

describe("the backups of this host", () => {
  test("have contents, age, size, and a command that restores them", () => {
    const { backups } = place.home;
    writeSampleBackup(backups, "postgres", NEWEST);
    writeSampleBackup(backups, "postgres", OLDER);
    writeSampleBackup(backups, "notes", NEWEST);
    const found = readBackups(backups, jobsWith());
    expect(found.map(({ kind, name }) => [kind, name])).toEqual([
      ["postgres", NEWEST],
      ["postgres", OLDER],
      ["notes", NEWEST],
    ]);
    const { kinds } = viewBackups(factsOf({ backups: found }));
    expect(kinds[0]?.backups[0]).toMatchObject({
      taken: "21 Nov, 03:00",
      age: "7 h ago",
      contents: "3 keys, 1,204 calls, 1,207 rows of 2 tables, Postgres 18.1",
      problem: null,
      restore: `npx hearth restore ${NEWEST}`,
    });
    expect(kinds[1]?.backups[0]).toMatchObject({
      contents: "vault family with 312 documents, vault work with 1 document",
      restore: `npx hearth notes restore ${NEWEST}`,
    });
  });

  test("of many vaults have the sum of their documents", () => {
    const { backups } = place.home;
    const documents = { a: 1000, b: 200, c: 30, d: 4, e: 0 };
    writeSampleBackup(backups, "notes", NEWEST, documents);
    const [found] = readBackups(backups, jobsWith());
    expect(found?.contents).toBe("5 vaults with 1,234 documents");
  });

  test("have the result of their own last drill; a failed one was of the newest backup at that time", () => {
    const { backups } = place.home;
    writeSampleBackup(backups, "postgres", NEWEST);
    writeSampleBackup(backups, "postgres", OLDER);
    const found = readBackups(
      backups,
      jobsWith(
        run({ id: 9, details: { backup: NEWEST } }),
        run({ id: 8, status: "failed", startedAt: now - 10 * HOUR_MS }),
        run({ id: 7, details: { backup: OLDER } }),
      ),
    );
    expect(found.map(({ drill }) => drill?.id)).toEqual([9, 8]);
    const { kinds } = viewBackups(factsOf({ backups: found }));
    expect(kinds[0]?.backups.map(({ drill }) => drill)).toMatchObject([
      { look: "ok", words: "restored in a drill 1 h ago" },
      { look: "bad", href: "/jobs/restore-drill/8" },
    ]);
  });

  test.each(["postgres", "notes"] as const)(
    "are unusable when a file was truncated: %s",
    (kind) => {
      const { backups } = place.home;
      writeSampleBackup(backups, kind, NEWEST);
      truncateSync(join(backups, kind, NEWEST, "data"), 100);
      const [found] = readBackups(backups, jobsWith());
      expect(found?.contents).toBeNull();
      expect(found?.problem).toContain("has 100 bytes instead of 2048");
    },
  );

  test("are unusable when their manifest was changed", () => {
    const { backups } = place.home;
    writeSampleBackup(backups, "postgres", NEWEST);
    writeFileSync(join(backups, "postgres", NEWEST, "manifest.json"), "{}");
    mkdirSync(join(backups, "postgres", OLDER));
    const found = readBackups(backups, jobsWith());
    expect(found.every(({ contents }) => contents === null)).toBe(true);
    expect(found[0]?.problem).toContain("has changed since it was written");
    expect(backupsHeading(factsOf({ backups: found }))).toEqual({
      look: "bad",
      title: "2 backups are unusable.",
    });
  });
});

test("the heading is the age of the newest backup, unless something failed", () => {
  writeSampleBackup(place.home.backups, "postgres", NEWEST);
  const backups = readBackups(place.home.backups, jobsWith());
  expect(backupsHeading(factsOf())).toEqual({
    look: "none",
    title: "No backups yet.",
  });
  expect(backupsHeading(factsOf({ backups }))).toEqual({
    look: "ok",
    title: "The newest backup was taken 7 h ago.",
  });
  writeSampleBackup(place.home.backups, "postgres", "2027-11-21T030000Z");
  const withAhead = readBackups(place.home.backups, jobsWith());
  expect(withAhead).toHaveLength(2);
  // The clock was ahead when it was taken.
  expect(backupsHeading(factsOf({ backups: withAhead })).title).toBe(
    "The newest backup was taken 7 h ago.",
  );
  const offsiteWarning = {
    text: "There are no off-site backups.",
    command: "",
  };
  // Recommended, as on Status, which says that all is well.
  expect(backupsHeading(factsOf({ backups, offsiteWarning })).look).toBe("ok");
  expect(viewBackups(factsOf({ backups, offsiteWarning })).newest).toBe(
    "The newest backup was taken 7 h ago.",
  );
  const failed = run({ status: "failed" });
  expect(
    backupsHeading(factsOf({ backups, jobs: [job("offsite-copy", failed)] })),
  ).toEqual({ look: "warn", title: "offsite-copy failed." });
  expect(
    backupsHeading(factsOf({ backups, jobs: [job("compaction", failed)] }))
      .look,
  ).toBe("ok");
});

test("copies elsewhere have the last run of their job", () => {
  const { elsewhere } = viewBackups(
    factsOf({
      offsiteTarget: "nas:hearth",
      hasPeer: true,
      jobs: [
        job("offsite-copy", run({ job: "offsite-copy", text: "uploaded." })),
        job("offsite-drill"),
        job("backup-copy", run({ status: "failed", text: "refused." })),
      ],
    }),
  );
  expect(elsewhere).toMatchObject([
    { title: "Copies on the other host", look: "bad", text: "refused." },
    {
      title: "Off-site copies at nas:hearth",
      look: "ok",
      words: "done 1 h ago",
    },
    { name: "offsite-drill", look: "none", words: "has not run yet" },
  ]);
});
