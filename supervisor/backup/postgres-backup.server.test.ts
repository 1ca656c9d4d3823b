import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  asSuperuser,
  backupStand,
  failureOf,
  jobContext,
  migrations,
  never,
} from "../../test/supervisor/backup-stand.ts";
import { waitFor } from "../../test/supervisor/wait-for.ts";
import { verifyFiles } from "./backup-files.ts";
import { drillRestore } from "./drill.ts";
import { listBackups, writeManifest } from "./manifest.ts";
import { readPostgresManifest } from "./postgres-manifest.ts";
import { takeBackup } from "./take-backup.ts";

const stand = backupStand();

test("a drill restores the newest backup as the role backup, compares, and leaves no database behind", async () => {
  const { name, manifest } = await stand.take();
  const outcome = await drillRestore(
    {
      directory: stand.directory(),
      migrations,
      databaseUrl: stand.backupUrl(),
    },
    jobContext(),
  );
  expect(outcome).toMatchObject({
    status: "done",
    details: { backup: name, sums: manifest.sums },
  });
  const left = await asSuperuser(stand.stack().databaseUrl, (client) =>
    client.query("SELECT 1 FROM pg_database WHERE datname LIKE '%_drill'"),
  );
  expect(left.rows).toEqual([]);
});

test("a database without tables is no backup, and it is said why", async () => {
  const empty = new URL(stand.backupUrl());
  empty.pathname = "/postgres";
  const sentence = await failureOf(
    takeBackup({
      directory: stand.directory(),
      signal: never,
      pgDump: false,
      databaseUrl: empty.href,
      now: stand.now,
      progress: () => {},
    }),
  );
  expect(sentence).toMatch(/^the database has no tables/);
  expect(readdirSync(stand.directory())).toEqual([]);
});

test("an aborted backup leaves nothing", async () => {
  const abort = new AbortController();
  await expect(
    takeBackup({
      directory: stand.directory(),
      signal: abort.signal,
      pgDump: false,
      databaseUrl: stand.backupUrl(),
      now: stand.now,
      progress: (text) => {
        if (text === "copying users") {
          abort.abort();
        }
      },
    }),
  ).rejects.toThrow();
  expect(readdirSync(stand.directory())).toEqual([]);
});

test("kill -9 in the middle of a backup leaves none that anybody could take for whole, and the next run clears up", async () => {
  const child = stand.runKillable("backup", stand.backupUrl());
  await waitFor("files of a backup that is being made", () =>
    readdirSync(stand.directory()).some((name) => name.startsWith(".making-")),
  );
  await child.kill();
  expect(listBackups(stand.directory())).toEqual([]);
  const { name } = await stand.take();
  expect(readdirSync(stand.directory())).toEqual([name]);
  await verifyFiles(join(stand.directory(), name), never);
});

test("--pg-dump without the tool says so and takes no half backup", async () => {
  const path = process.env["PATH"];
  process.env["PATH"] = stand.directory();
  try {
    expect(await failureOf(stand.take(never, true))).toMatch(
      /^pg_dump is not installed on this machine: install the client programs of Postgres/,
    );
  } finally {
    process.env["PATH"] = path;
  }
  expect(readdirSync(stand.directory())).toEqual([]);
});

test("what is no backup of Postgres is not restored", async () => {
  const { name, manifest } = await stand.take();
  writeManifest(join(stand.directory(), name), {
    format: 1,
    kind: "notes" as const,
    takenAt: manifest.takenAt,
    files: [],
  });
  expect(() => readPostgresManifest(join(stand.directory(), name))).toThrow(
    "is not a backup of Postgres",
  );
});
