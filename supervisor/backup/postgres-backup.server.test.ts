import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import {
  asSuperuser,
  backupTestbed,
  failureOf,
  jobContext,
  migrations,
  never,
} from "../../test/supervisor/backup-testbed.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { waitFor } from "../../test/wait-for.ts";
import { configSchema } from "../config/schema.ts";
import { openHistory } from "../history/history.ts";
import { createHome } from "../home/home.ts";
import { openJobHistory } from "../jobs/job-history.ts";
import { Supervision } from "../supervision.ts";
import { verifyFiles } from "./backup-files.ts";
import { databaseOf, quoted, withDatabase } from "./database.ts";
import { drillRestore } from "./drill.ts";
import { listBackups, writeManifest } from "./manifest.ts";
import { readPostgresManifest } from "./postgres-manifest.ts";
import { takeBackup } from "./take-backup.ts";

const testbed = backupTestbed();

test("a drill restores the newest backup as the role backup, compares it, and drops its database", async () => {
  const { name, manifest } = await testbed.take();
  const outcome = await drillRestore(
    {
      directory: testbed.directory(),
      migrations,
      databaseUrl: testbed.backupUrl(),
      scratch: "_drill",
      freeBytes: () => 1e12,
    },
    jobContext(),
  );
  expect(outcome).toMatchObject({
    status: "done",
    details: { backup: name, sums: manifest.sums },
  });
  expect(await scratchDatabases()).toEqual([]);
});

test("a drill that would fill the disk of Postgres is not started", async () => {
  await testbed.take();
  const drill = (freeBytes: number) =>
    drillRestore(
      {
        directory: testbed.directory(),
        migrations,
        databaseUrl: testbed.backupUrl(),
        scratch: "_drill",
        freeBytes: () => freeBytes,
      },
      {
        ...jobContext(),
        progress: (text) => expect.fail(`the drill started: ${text}`),
      },
    );
  expect(await failureOf(drill(10_000))).toMatch(
    /^the drill restores backup .* of free disk space, and 10 kB are available: free some space\.$/,
  );
  expect(await scratchDatabases()).toEqual([]);
});

async function scratchDatabases(): Promise<readonly unknown[]> {
  const left = await asSuperuser(testbed.stack().databaseUrl, (client) =>
    client.query("SELECT 1 FROM pg_database WHERE datname LIKE '%_drill'"),
  );
  return left.rows;
}

test("the databases and files of drills that were killed with their supervisor are removed at its next start", async () => {
  const place = temporaryHome();
  createHome(place.home);
  const history = openHistory(place.home.history);
  onTestFinished(() => {
    history.close();
    place.remove();
  });
  const supervision = new Supervision({
    home: place.home,
    env: { BACKUP_DATABASE_URL: testbed.backupUrl() },
    config: { leftOut: [], config: configSchema.parse({}) },
    history,
    onCheck: () => {},
    onNotice: () => {},
  });
  const jobs = openJobHistory(history.db, (sentence) => expect.fail(sentence));
  for (const job of ["restore-drill", "offsite-drill"]) {
    jobs.recordStart({
      job,
      due: null,
      caughtUp: false,
      startedAt: Date.now(),
      askedBy: null,
    });
  }
  const offsite = join(place.home.backups, ".offsite");
  const pulled = join(offsite, "drill-postgres-pulled");
  mkdirSync(pulled, { recursive: true });
  writeFileSync(join(pulled, "keys.copy.gz"), "part");
  await withDatabase(testbed.backupUrl(), never, async (client) => {
    const name = databaseOf(testbed.backupUrl());
    await client.query(`CREATE DATABASE ${quoted(`${name}_drill`)}`);
    await client.query(`CREATE DATABASE ${quoted(`${name}_offsite_drill`)}`);
  });
  supervision.start();
  onTestFinished(() => supervision.rest());
  await waitFor(
    "the databases to be dropped",
    async () => (await scratchDatabases()).length === 0,
  );
  expect(readdirSync(offsite)).toEqual([]);
});

test("a database without tables is not backed up, with the reason", async () => {
  const empty = new URL(testbed.backupUrl());
  empty.pathname = "/postgres";
  const sentence = await failureOf(
    takeBackup({
      directory: testbed.directory(),
      signal: never,
      pgDump: false,
      databaseUrl: empty.href,
      now: testbed.now,
      progress: () => {},
    }),
  );
  expect(sentence).toMatch(/^the database has no tables/);
  expect(readdirSync(testbed.directory())).toEqual([]);
});

test("an aborted backup leaves no files", async () => {
  const abort = new AbortController();
  await expect(
    takeBackup({
      directory: testbed.directory(),
      signal: abort.signal,
      pgDump: false,
      databaseUrl: testbed.backupUrl(),
      now: testbed.now,
      progress: (text) => {
        if (text === "copying users") {
          abort.abort();
        }
      },
    }),
  ).rejects.toThrow();
  expect(readdirSync(testbed.directory())).toEqual([]);
});

test("kill -9 during a backup leaves no seemingly complete one, and the next run removes the rest", async () => {
  const child = testbed.runKillable("backup", testbed.backupUrl());
  await waitFor("files of a backup that is being made", () =>
    readdirSync(testbed.directory()).some((name) =>
      name.startsWith(".making-"),
    ),
  );
  await child.kill();
  expect(listBackups(testbed.directory())).toEqual([]);
  const { name } = await testbed.take();
  expect(readdirSync(testbed.directory())).toEqual([name]);
  await verifyFiles(join(testbed.directory(), name), never);
});

test("--pg-dump without the tool fails without a partial backup", async () => {
  const path = process.env["PATH"];
  process.env["PATH"] = testbed.directory();
  try {
    expect(await failureOf(testbed.take(never, true))).toMatch(
      /^pg_dump is not installed on this machine: install the client programs of Postgres/,
    );
  } finally {
    process.env["PATH"] = path;
  }
  expect(readdirSync(testbed.directory())).toEqual([]);
});

test("a directory that is not a backup of Postgres is not restored", async () => {
  const { name, manifest } = await testbed.take();
  writeManifest(join(testbed.directory(), name), {
    format: 1,
    kind: "notes" as const,
    takenAt: manifest.takenAt,
    files: [],
  });
  expect(() => readPostgresManifest(join(testbed.directory(), name))).toThrow(
    "is not a backup of Postgres",
  );
});
