import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { jobContext } from "../../test/supervisor/backup-testbed.ts";
import { hasRclone, placeBackup } from "../../test/supervisor/rclone.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { backupName } from "../backup/manifest.ts";
import { configSchema } from "../config/schema.ts";
import { makeIdentity } from "./age.ts";
import { offsiteJobs } from "./offsite-jobs.ts";
import { storeOffsite } from "./settings.ts";

const now = jobContext().now();
const HOUR = 3_600_000;

describe.skipIf(!hasRclone())("with rclone", () => {
  test("a backup taken while the clock was ahead does not stop later ones from being uploaded", async () => {
    const place = temporaryHome();
    onTestFinished(() => place.remove());
    mkdirSync(place.home.backups, { recursive: true });
    const target = join(place.directory, "disk");
    mkdirSync(target);
    storeOffsite(place.home, { target, identity: await makeIdentity() });
    const postgres = join(place.home.backups, "postgres");
    const jobs = offsiteJobs({
      home: place.home,
      env: { PATH: process.env["PATH"] },
      config: configSchema.parse({}),
      alarms: { raise: () => {}, clear: () => {} },
    });
    const run = (name: string) =>
      jobs.find((job) => job.name === name)?.run(jobContext());

    const ahead = backupName(now + 365 * 24 * HOUR);
    placeBackup(postgres, ahead, { "keys.copy.gz": "ahead" });
    expect((await run("offsite-copy"))?.summary).toContain(ahead);
    const later = backupName(now - HOUR);
    placeBackup(postgres, later, { "keys.copy.gz": "later" });
    expect((await run("offsite-copy"))?.summary).toContain(
      `uploaded postgres ${later} `,
    );
    // The same one is fetched by default.
    expect((await run("offsite-fetch"))?.details).toEqual({
      kind: "postgres",
      backup: later,
    });
  });
});
