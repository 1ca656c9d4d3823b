import { afterEach, beforeEach, expect, test } from "vitest";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { configSchema } from "../config/schema.ts";
import type { Context } from "../context.ts";
import { createHome } from "../home/home.ts";
import { offsiteJobs } from "../offsite/offsite-jobs.ts";
import { backupJobs, backupPlaces } from "./backup-jobs.ts";

let place: ReturnType<typeof temporaryHome>;

beforeEach(() => {
  place = temporaryHome();
});
afterEach(() => place.remove());

/** Checks a request for a job without running it. */
function check(name: string, options: Readonly<Record<string, unknown>>): void {
  const context = {
    home: place.home,
    env: {},
    config: configSchema.parse({}),
  } as Context;
  const jobs = [...backupJobs(context), ...offsiteJobs(context)];
  jobs.find((job) => job.name === name)?.check?.(options);
}

test("a restore of a missing backup, or with an unknown option, is rejected before it starts", () => {
  expect(() => check("restore", {})).toThrow("there are no backups in");
  expect(() => check("restore", { backup: "yesterday" })).toThrow(
    'backup "yesterday" not found',
  );
  expect(() =>
    check("restore", { databaseUrl: "postgres://b/hearth" }),
  ).toThrow("unknown option databaseUrl");
});

test("a download of an off-site backup is rejected before it starts where no target is configured, or the kind is unknown", () => {
  expect(() => check("offsite-fetch", {})).toThrow(
    "no off-site target is configured",
  );
  expect(() => check("offsite-fetch", { kind: "mail" })).toThrow("kind");
});

test("the free space of Postgres is known where it shares the disk of the home", () => {
  createHome(place.home);
  const freeBytes = (runtime: string | undefined) =>
    backupPlaces(place.home, { HEARTH_RUNTIME: runtime }).freeBytes();
  for (const runtime of ["process", "docker"]) {
    expect(freeBytes(runtime), runtime).toBeGreaterThan(0);
  }
  for (const runtime of ["kubernetes", "none", undefined]) {
    expect(freeBytes(runtime), runtime).toBeUndefined();
  }
});
