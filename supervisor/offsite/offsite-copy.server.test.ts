import { mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { HOUR_MS } from "../../core/duration.ts";
import { failureOf, jobContext } from "../../test/supervisor/backup-testbed.ts";
import { hasRclone, placeBackup } from "../../test/supervisor/rclone.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import type { Alarm } from "../alerts/alarm.ts";
import { backupName } from "../backup/manifest.ts";
import { watchSize } from "../backup/size-cap.ts";
import { configSchema } from "../config/schema.ts";
import { makeIdentity } from "./age.ts";
import { OFFSITE_SIZE_FINGERPRINT, offsiteJobs } from "./offsite-jobs.ts";
import { storeOffsite } from "./settings.ts";
import { alarmsIn } from "../../test/supervisor/raised-alarms.ts";

const now = jobContext().now();

test("the alarm about the size at the target ends when there is no target any more", async () => {
  const place = temporaryHome();
  onTestFinished(() => place.remove());
  const raised = new Map<string, Alarm>();
  const alarms = alarmsIn(raised);
  const { home } = place;
  const jobs = offsiteJobs({
    home,
    env: {},
    config: configSchema.parse({}),
    alarms,
  });
  watchSize(alarms, OFFSITE_SIZE_FINGERPRINT, "at disk:", 90, 100);
  expect(raised.size).toBe(1);
  const copy = jobs.find(({ name }) => name === "offsite-copy");
  expect((await copy?.run(jobContext()))?.status).toBe("skipped");
  expect(raised.size).toBe(0);
});

describe.skipIf(!hasRclone())("with rclone", () => {
  test("nothing is uploaded to a target that has lost its backups, as a disk has that is not mounted", async () => {
    const place = temporaryHome();
    onTestFinished(() => place.remove());
    mkdirSync(place.home.backups, { recursive: true });
    const target = join(place.directory, "disk");
    mkdirSync(target);
    const jobs = offsiteJobs({
      home: place.home,
      env: { PATH: process.env["PATH"] },
      config: configSchema.parse({}),
      alarms: alarmsIn(new Map()),
    });
    const copy = async () =>
      jobs.find(({ name }) => name === "offsite-copy")?.run(jobContext());
    storeOffsite(place.home, { target, identity: await makeIdentity() });
    const postgres = join(place.home.backups, "postgres");
    placeBackup(postgres, backupName(now - HOUR_MS), { "keys.gz": "first" });
    expect((await copy())?.status).toBe("done");
    placeBackup(postgres, backupName(now), { "keys.gz": "second" });

    renameSync(target, `${target}-away`);
    mkdirSync(target);
    const failure = await failureOf(copy());
    expect(failure).toMatch(/has none of the backups .* mount it/);
    expect(readdirSync(target)).toEqual([]);
    rmSync(target, { recursive: true });
    renameSync(`${target}-away`, target);
    expect((await copy())?.status).toBe("done");

    // They were removed on purpose.
    rmSync(target, { recursive: true });
    mkdirSync(target);
    const [record = ""] = /\/\S+uploaded-to/.exec(failure) ?? [];
    rmSync(record);
    expect((await copy())?.status).toBe("done");
    // Another target starts empty.
    const other = join(place.directory, "other");
    mkdirSync(other);
    storeOffsite(place.home, { target: other, identity: await makeIdentity() });
    expect((await copy())?.status).toBe("done");
  });

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
      alarms: alarmsIn(new Map()),
    });
    const run = (name: string) =>
      jobs.find((job) => job.name === name)?.run(jobContext());

    const ahead = backupName(now + 365 * 24 * HOUR_MS);
    placeBackup(postgres, ahead, { "keys.copy.gz": "ahead" });
    expect((await run("offsite-copy"))?.summary).toContain(ahead);
    const later = backupName(now - HOUR_MS);
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
