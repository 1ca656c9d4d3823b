import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  asSuperuser,
  backupTestbed,
  failureOf,
  jobContext,
  migrations,
  never,
} from "../../test/supervisor/backup-testbed.ts";
import { waitFor } from "../../test/supervisor/wait-for.ts";
import { verifyFiles } from "./backup-files.ts";
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
    },
    jobContext(),
  );
  expect(outcome).toMatchObject({
    status: "done",
    details: { backup: name, sums: manifest.sums },
  });
  const left = await asSuperuser(testbed.stack().databaseUrl, (client) =>
    client.query("SELECT 1 FROM pg_database WHERE datname LIKE '%_drill'"),
  );
  expect(left.rows).toEqual([]);
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
