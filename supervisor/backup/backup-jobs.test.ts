import { afterEach, beforeEach, expect, test } from "vitest";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { configSchema } from "../config/schema.ts";
import type { Context } from "../context.ts";
import { offsiteJobs } from "../offsite/offsite-jobs.ts";
import { backupJobs } from "./backup-jobs.ts";

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
