import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
} from "vitest";
import {
  serversUnderTest,
  type ServerUnderTest,
} from "../../test/contract/server-under-test.ts";
import { superuserUrl } from "../../test/servers/database.ts";
import { startRelay } from "../../test/servers/relay.ts";
import { postgresWire } from "../../test/servers/wire-postgres.ts";
import type { Alarm } from "../alerts/alarm.ts";
import { backupPlaces } from "../backup/backup-jobs.ts";
import { drillRestore } from "../backup/drill.ts";
import { takeBackup } from "../backup/take-backup.ts";
import { configSchema } from "../config/schema.ts";
import type { Job } from "../jobs/job.ts";
import { backupNotes } from "../vaults/backup.ts";
import type { Couch } from "../vaults/couch.ts";
import { Database, vaultNames } from "../vaults/database.ts";
import { notesJobs } from "../vaults/notes-jobs.ts";
import {
  asSuperuser,
  backupTestbed,
  failureOf,
  jobContext,
  never,
} from "../../test/supervisor/backup-testbed.ts";
import {
  openNotesTestbed,
  writeNotes,
  type NotesTestbed,
} from "../../test/supervisor/notes-testbed.ts";
import { hasRclone } from "../../test/supervisor/rclone.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { makeIdentity } from "./age.ts";
import { notesOffsiteDrill, offsiteJobs } from "./offsite-jobs.ts";
import { storeOffsite } from "./settings.ts";
import { probeOffsite, offsiteWarning } from "./warning.ts";
import { alarmsIn } from "../../test/supervisor/raised-alarms.ts";

const testbed = backupTestbed();
const [embedded] = serversUnderTest() as [ServerUnderTest];

describe.skipIf(!hasRclone())("off-site jobs", () => {
  let place: ReturnType<typeof temporaryHome>;
  let notes: NotesTestbed;
  let target: string;
  const raised = new Map<string, Alarm>();

  beforeAll(async () => {
    notes = await openNotesTestbed(embedded);
    await new Database(notes.couch, "vault-away").create();
    await writeNotes(notes.couch, "vault-away", 20);
  });
  afterAll(() => notes.close());
  beforeEach(() => {
    place = temporaryHome();
    mkdirSync(place.home.backups, { recursive: true });
    target = join(place.directory, "disk");
    mkdirSync(target);
    raised.clear();
  });
  afterEach(() => place.remove());

  const env = () => ({
    PATH: process.env["PATH"],
    HEARTH_JOBS: "on",
    BACKUP_DATABASE_URL: testbed.backupUrl(),
    HEARTH_MIGRATIONS: testbed.migrations,
  });

  function jobs(config: unknown = {}): readonly Job[] {
    const parts = {
      home: place.home,
      env: env(),
      config: configSchema.parse(config),
      alarms: alarmsIn(raised),
    };
    return [
      ...offsiteJobs(parts),
      notesOffsiteDrill(parts, notes.couch, notes.busy),
    ];
  }

  function run(
    name: string,
    options: Readonly<Record<string, unknown>> = {},
    config: unknown = {},
  ) {
    const job = jobs(config).find((each) => each.name === name);
    if (job === undefined) {
      throw new Error(`there is no job ${name}`);
    }
    return job.run(jobContext(options));
  }

  async function backUpBoth(): Promise<void> {
    await takeBackup({
      directory: join(place.home.backups, "postgres"),
      signal: never,
      databaseUrl: testbed.backupUrl(),
      pgDump: false,
      now: testbed.now,
      progress: () => {},
    });
    await backupNotes({
      couch: notes.couch,
      escrow: notes.escrow,
      directory: join(place.home.backups, "notes"),
      now: testbed.now,
      signal: never,
      progress: () => {},
    });
  }

  async function setUp(): Promise<void> {
    storeOffsite(place.home, { target, identity: await makeIdentity() });
  }

  test("both kinds are uploaded once, restored in a drill, and can be fetched after they were lost", async () => {
    await backUpBoth();
    expect((await run("offsite-copy")).status).toBe("skipped");
    await setUp();
    const uploaded = await run("offsite-copy");
    expect(uploaded.summary).toMatch(
      /^uploaded postgres \S+Z \(.+\) and notes \S+Z \(.+\) to \S+, which has .+ now\.$/,
    );
    expect(await run("offsite-copy")).toMatchObject({
      status: "skipped",
      summary: `${target} already has the newest backups.`,
    });
    const [name] = readdirSync(join(place.home.backups, "postgres"));
    // The drills need only the target.
    rmSync(place.home.backups, { recursive: true });
    mkdirSync(place.home.backups);
    expect((await run("offsite-drill")).summary).toMatch(
      /Z restores: \d+ rows of \d+ tables, and the ledger adds up/,
    );
    expect((await run("notes-offsite-drill")).summary).toMatch(
      /Z restores: vault-away with 40 documents, 40 revisions \(40 compared\)\.$/,
    );
    const { rows } = await asSuperuser(
      superuserUrl(testbed.stack().databaseUrl),
      (client) =>
        client.query("SELECT 1 FROM pg_database WHERE datname LIKE '%_drill'"),
    );
    expect(rows).toEqual([]);
    expect(await vaultNames(notes.couch)).toEqual(["vault-away"]);

    expect((await run("offsite-fetch", { kind: "postgres" })).details).toEqual({
      kind: "postgres",
      backup: name,
    });
    expect(await run("offsite-fetch", { name })).toMatchObject({
      status: "skipped",
      details: { backup: name },
    });
    expect(readdirSync(join(place.home.backups, "postgres"))).toEqual([name]);
    expect(readdirSync(join(place.home.backups, ".offsite"))).toEqual([]);
  });

  test("a drill of the off-site backup does not disturb one of the local backup, of Postgres", async () => {
    await backUpBoth();
    await setUp();
    await run("offsite-copy");
    const url = new URL(testbed.backupUrl());
    const relay = await startRelay(Number(url.port), postgresWire);
    onTestFinished(() => relay.close());
    url.port = String(relay.port);
    const loading = Promise.withResolvers<void>();
    const local = drillRestore(
      {
        ...backupPlaces(place.home, env()),
        databaseUrl: url.href,
        scratch: "_drill",
      },
      {
        ...jobContext(),
        progress: (text) => {
          if (text === "creating the tables") {
            relay.stall();
            loading.resolve();
          }
        },
      },
    );
    await Promise.race([loading.promise, local]);
    expect((await run("offsite-drill")).status).toBe("done");
    relay.restore();
    expect((await local).status).toBe("done");
  });

  test("a drill of the off-site backup does not disturb one of the local backup, of the notes", async () => {
    await backUpBoth();
    await setUp();
    await run("offsite-copy");
    const loading = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const couch: Couch = {
      ...notes.couch,
      ask: async (method, path, options) => {
        if (path.endsWith("/_bulk_docs")) {
          loading.resolve();
          await released.promise;
        }
        return notes.couch.ask(method, path, options);
      },
    };
    const local = notesJobs({
      ...notes,
      couch,
      backups: join(place.home.backups, "notes"),
      config: configSchema.parse({}),
      freeBytes: () => 1e12,
      address: () => notes.server.url,
    })
      .find(({ name }) => name === "notes-drill")
      ?.run(jobContext());
    await Promise.race([loading.promise, local]);
    expect((await run("notes-offsite-drill")).status).toBe("done");
    expect([...notes.busy]).toEqual(["hearth_drill_1"]);
    released.resolve();
    expect((await local)?.status).toBe("done");
    expect([...notes.busy]).toEqual([]);
  });

  test("an altered file at the target fails the drill", async () => {
    await backUpBoth();
    await setUp();
    await run("offsite-copy");
    for (const entry of readdirSync(target, {
      recursive: true,
      withFileTypes: true,
    })) {
      if (entry.isFile() && entry.parentPath.includes("/objects/")) {
        writeFileSync(join(entry.parentPath, entry.name), "x");
      }
    }
    expect(await failureOf(run("offsite-drill"))).toMatch(
      /cannot decrypt an off-site file/,
    );
    expect(await failureOf(run("notes-offsite-drill"))).toMatch(
      /cannot decrypt an off-site file/,
    );
  });

  test("an alarm is raised before the limit at the target is reached", async () => {
    await backUpBoth();
    await setUp();
    const { details } = await run("offsite-copy");
    expect(raised.size).toBe(0);
    const bytes = Number(details?.["bytes"]);
    const at_most = `${(bytes * 1.1) / 1e6}MB`;
    await run("offsite-copy", {}, { backups: { at_most } });
    expect(raised.get("offsite-size")?.text).toContain(`backups at ${target}`);
  });

  test("without a target, the supervisor and doctor warn and name the risk", async () => {
    const text =
      "There are no off-site backups. If this machine is lost, its backups are lost with it.";
    const { home } = place;
    expect(offsiteWarning(home, env())?.text).toBe(text);
    expect(
      offsiteWarning(home, { ...env(), HEARTH_PEER_URL: "http://b:4080" })
        ?.text,
    ).toContain("If both hosts are lost");
    expect(offsiteWarning(home, { HEARTH_JOBS: "off" })).toBeUndefined();
    expect(probeOffsite(home, env())).toMatchObject([
      { level: "hint", fix: "hearth offsite setup REMOTE:PATH" },
    ]);
    await setUp();
    expect(offsiteWarning(home, env())).toBeUndefined();
    expect(probeOffsite(home, env())).toMatchObject([{ level: "fine" }]);
    expect(probeOffsite(home, { PATH: "/nonexistent" })).toMatchObject([
      { level: "wrong", fix: "apt install rclone" },
    ]);
    const PATH = join(place.directory, "broken");
    mkdirSync(PATH);
    writeFileSync(join(PATH, "rclone"), "#!/bin/sh\nexit 3\n", { mode: 0o755 });
    expect(probeOffsite(home, { PATH })).toMatchObject([
      {
        level: "wrong",
        text: expect.stringContaining("rclone fails: "),
        fix: "rclone version",
      },
    ]);
  });
});
