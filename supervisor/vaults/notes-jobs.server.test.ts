import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { DAY_MS } from "../../core/duration.ts";
import {
  serversUnderTest,
  type ServerUnderTest,
} from "../../test/contract/server-under-test.ts";
import { backupName, listBackups } from "../backup/manifest.ts";
import { configSchema } from "../config/schema.ts";
import type { Job, JobOutcome } from "../jobs/job.ts";
import {
  openNotesTestbed,
  writeNotes,
  type NotesTestbed,
} from "../../test/supervisor/notes-testbed.ts";
import { Database } from "./database.ts";
import { MILESTONE_ID } from "./livesync.ts";
import { notesJobs } from "./notes-jobs.ts";
import { vaultChoices } from "./plugin-settings.ts";

const [embedded] = serversUnderTest() as [ServerUnderTest];
const VAULT = "vault-jobs";
let testbed: NotesTestbed;
let jobs: readonly Job[];

beforeAll(async () => {
  testbed = await openNotesTestbed(embedded);
  jobs = notesJobs({
    ...testbed,
    config: configSchema.parse({}),
    freeBytes: () => 1e12,
    address: () => testbed.server.url,
  });
  await testbed.provisioning.add({
    vault: VAULT,
    choices: vaultChoices.parse({}),
  });
  await writeNotes(testbed.couch, VAULT, 3);
});
afterAll(() => testbed.close());

function jobOf(name: string): Job {
  const job = jobs.find((each) => each.name === name);
  return job ?? expect.fail(`there is no job ${name}`);
}

function run(
  name: string,
  options: Readonly<Record<string, unknown>> = {},
  onDemand = true,
): Promise<JobOutcome> {
  return jobOf(name).run({
    signal: new AbortController().signal,
    now: testbed.now,
    progress: () => {},
    onDemand,
    options,
  });
}

test("a scheduled compaction skips a small vault and reports the reason", async () => {
  expect(await run("compaction", {}, false)).toMatchObject({
    status: "skipped",
    summary: expect.stringMatching(
      /^Vault vault-jobs \(\d+ kB\) not compacted: only \d+ kB can be reclaimed\.$/,
    ) as string,
  });
  // A compaction started because of the size is skipped, too.
  expect(await run("compaction", { vault: VAULT, large: true })).toMatchObject({
    status: "skipped",
  });
});

test("a requested compaction runs and reports sizes", async () => {
  const { status, summary, details } = await run("compaction");
  expect(status).toBe("done");
  expect(summary).toMatch(
    /^Vault vault-jobs compacted from \S+ [kM]?B to \S+ [kM]?B\.$/,
  );
  expect(details).toMatchObject({ vaults: [{ vault: VAULT, status: "done" }] });
});

test.each(["compaction", "notes-doctor"])(
  "%s of an unknown vault starts no run, whose failure would raise an alarm",
  (name) => {
    const { check } = jobOf(name);
    expect(() => check?.({ vault: "vault-job" })).toThrow(
      'vault "vault-job" not found (did you mean "vault-jobs"?)',
    );
    expect(() => check?.({ vault: VAULT })).not.toThrow();
    expect(() => check?.({})).not.toThrow();
  },
);

test("invalid options are rejected with one sentence", async () => {
  await expect(run("compaction", { vault: 7 })).rejects.toThrow(/^vault: /);
  await expect(run("notes-restore", { backup: "../etc" })).rejects.toThrow(
    'backup "../etc" not found',
  );
  await expect(run("notes-doctor", { vault: "nowhere" })).rejects.toThrow(
    'vault "nowhere" not found',
  );
  await expect(run("notes-doctor", { url: "nowhere" })).rejects.toThrow(
    "is not a valid address for devices",
  );
});

test("the drill needs a backup and reports what it compared", async () => {
  await expect(run("notes-drill")).rejects.toThrow(
    "there is no backup of the notes to test",
  );
  expect((await run("notes-backup")).summary).toMatch(
    /^1 vault with 6 revisions in \d+ kB: \S+Z\.$/,
  );
  expect((await run("notes-drill")).summary).toMatch(
    /restores: vault-jobs with 6 documents, 6 revisions \(6 compared\)\.$/,
  );
});

test("a backup removes those beyond the retention", async () => {
  const old = Array.from({ length: 40 }, (_each, index) =>
    backupName(testbed.now() - (index + 1) * DAY_MS),
  );
  for (const name of old) {
    mkdirSync(join(testbed.backups, name), { recursive: true });
  }
  const { summary } = await run("notes-backup");
  expect(summary).toContain("old backups removed");
  const left = listBackups(testbed.backups);
  expect(left.length).toBeLessThan(15);
  expect(left.length).toBeGreaterThanOrEqual(8);
});

test("conflicts are reported immediately, with an alarm after a week", async () => {
  const database = new Database(testbed.couch, VAULT);
  for (const rev of ["1-aa", "1-bb"]) {
    await database.write(
      [{ _id: "a.md", _rev: `${rev}${"0".repeat(30)}`, path: "a.md" }],
      { keepRevisions: true },
    );
  }
  expect((await run("notes-conflicts")).summary).toBe(
    "vault-jobs: 1 conflicted.",
  );
  const fingerprint = `notes-conflicts:${VAULT}`;
  expect(testbed.raised.has(fingerprint)).toBe(false);
  testbed.pass(8 * DAY_MS);
  await run("notes-conflicts");
  expect(testbed.raised.get(fingerprint)?.text).toContain(
    "1 note of vault vault-jobs is conflicted, the oldest for 8 d",
  );
  await database.write([
    { _id: "a.md", _rev: `1-aa${"0".repeat(30)}`, _deleted: true },
  ]);
  expect((await run("notes-conflicts")).summary).toBe(
    "there are no conflicts.",
  );
  expect(testbed.raised.has(fingerprint)).toBe(false);
});

test("a locked vault is an alarm until it is open", async () => {
  const database = new Database(testbed.couch, VAULT);
  const fingerprint = `notes-locked:${VAULT}`;
  await database.put(MILESTONE_ID, { locked: true, node_info: {} });
  await run("notes-devices");
  expect(testbed.raised.get(fingerprint)?.command).toBe(
    `hearth notes devices ${VAULT}`,
  );
  await database.put(MILESTONE_ID, { locked: false, node_info: {} });
  expect((await run("notes-devices")).summary).toBe(
    "0 devices; no action needed.",
  );
  expect(testbed.raised.has(fingerprint)).toBe(false);
});

test.each(["compaction", "notes-conflicts"])(
  "%s leaves out a vault that is removed during the run",
  async (name) => {
    const listed = vi
      .spyOn(testbed.couch, "ask")
      .mockResolvedValueOnce(["vault-removed", VAULT]);
    const { details } = await run(name).finally(() => listed.mockRestore());
    expect(details).toMatchObject({ vaults: [{ vault: VAULT }] });
  },
);

test("the compaction of a named vault that does not exist fails", async () => {
  await expect(run("compaction", { vault: "vault-removed" })).rejects.toThrow(
    'vault "vault-removed" not found',
  );
});
