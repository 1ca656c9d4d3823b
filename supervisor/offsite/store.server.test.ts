import { randomBytes } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  test,
} from "vitest";
import { failureOf, never } from "../../test/supervisor/backup-testbed.ts";
import {
  placeBackup,
  hasRclone,
  serveSftp,
} from "../../test/supervisor/rclone.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { makeIdentity } from "./age.ts";
import { pruneOffsite } from "./prune.ts";
import { pullBackup } from "./pull.ts";
import { pushBackup } from "./push.ts";
import { openOffsite, type OffsitePlace } from "./settings.ts";
import { backupsIn, chooseOffsite, readEntries } from "./store.ts";

const work = { signal: never, progress: () => {} };
const keep = { daily: 7, weekly: 4, monthly: 12 };
const now = Date.UTC(2026, 10, 21, 4);
const PLAIN = "a sentence that must not leave this machine in clear\n";

interface Target {
  readonly target: string;
  readonly env: Readonly<Record<string, string>>;
  /** Where the target's files are on this machine. */
  readonly files: string;
}

const PATH = process.env["PATH"] ?? "";
let testbed: ReturnType<typeof temporaryHome>;
let sftp: Awaited<ReturnType<typeof serveSftp>>;

describe.skipIf(!hasRclone())("with rclone", () => {
  let sftpFiles: ReturnType<typeof temporaryHome>;
  beforeAll(async () => {
    sftpFiles = temporaryHome();
    sftp = await serveSftp(sftpFiles.directory);
  });
  afterAll(async () => {
    await sftp.stop();
    sftpFiles.remove();
  });
  beforeEach(() => {
    testbed = temporaryHome();
    mkdirSync(testbed.home.backups, { recursive: true });
  });
  afterEach(() => testbed.remove());

  const targets: Readonly<Record<string, () => Target>> = {
    "another disk": () => {
      const files = join(testbed.directory, "disk");
      mkdirSync(files);
      return { target: files, env: { PATH }, files };
    },
    "SFTP, with a configuration from a variable": () => ({
      target: "nas:house",
      env: { PATH, OFFSITE_RCLONE_CONFIG: sftp.config },
      files: join(sftpFiles.directory, "house"),
    }),
  };

  async function open(
    { target, env }: Target,
    identity: string,
  ): Promise<OffsitePlace> {
    return openOffsite(testbed.home, env, { target, identity }, "test");
  }

  const postgres = () => join(testbed.home.backups, "postgres");

  function push(
    place: OffsitePlace,
    name: string,
    files: Readonly<Record<string, string | Buffer>>,
  ): Promise<number> {
    const backup = placeBackup(postgres(), name, files);
    const extra = undefined;
    return pushBackup(
      place,
      { kind: "postgres", name },
      {
        ...work,
        backup,
        extra,
      },
    );
  }

  const filesBelow = (directory: string): readonly string[] =>
    readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name));

  describe.each(Object.entries(targets))("%s", (_name, targetNow) => {
    test("a backup is restored unchanged; only changes are uploaded, and nothing at the target is readable", async () => {
      const target = targetNow();
      const place = await open(target, await makeIdentity());
      const large = randomBytes(700_000);
      const files = { "keys.copy.gz": PLAIN, "spend.copy.gz": large };
      const first = await push(place, "2026-11-20T030000Z", files);
      expect(first).toBeGreaterThan(700_000);
      const second = await push(place, "2026-11-21T030000Z", {
        ...files,
        "users.copy.gz": "new",
      });
      expect(second).toBeGreaterThan(0);
      expect(second).toBeLessThan(1000);

      for (const path of filesBelow(target.files)) {
        const stored = readFileSync(path);
        expect(stored.subarray(0, 21).toString()).toBe("age-encryption.org/v1");
        expect(stored.includes(PLAIN.trim())).toBe(false);
        expect(path).not.toContain("copy.gz");
      }
      const there = backupsIn(await place.remote.list(never));
      expect(there.map(({ name }) => name)).toEqual([
        "2026-11-21T030000Z",
        "2026-11-20T030000Z",
      ]);

      const here = join(testbed.directory, "fetched");
      const backup = await chooseOffsite(
        place,
        "postgres",
        undefined,
        now,
        never,
      );
      await pullBackup(place, backup, here, work);
      for (const file of readdirSync(join(here, backup.name))) {
        expect(readFileSync(join(here, backup.name, file))).toEqual(
          readFileSync(join(postgres(), backup.name, file)),
        );
      }
      // Neither staged nor downloaded files remain.
      expect(existsSync(place.staging)).toBe(false);
    });

    test("an interrupted upload is repeated; an altered file fails without leaving files", async () => {
      const target = targetNow();
      const place = await open(target, await makeIdentity());
      const name = "2026-11-20T030000Z";
      await push(place, name, { "keys.copy.gz": PLAIN });
      const [object = ""] = filesBelow(
        join(target.files, place.folder, "objects"),
      );
      truncateSync(object, 100);
      const again = await push(place, "2026-11-21T030000Z", {
        "keys.copy.gz": PLAIN,
      });
      expect(again).toBeGreaterThan(0);

      const stored = readFileSync(object);
      stored[stored.length - 1]! ^= 1;
      writeFileSync(object, stored);
      const here = join(testbed.directory, "fetched");
      const pulled = pullBackup(place, { kind: "postgres", name }, here, work);
      expect(await failureOf(pulled)).toMatch(
        /cannot decrypt an off-site file/,
      );
      expect(readdirSync(here)).toEqual([]);
    });
  });

  test("a backup that was damaged on this machine is not uploaded", async () => {
    const place = await open(targets["another disk"]!(), await makeIdentity());
    const name = "2026-11-20T030000Z";
    const backup = placeBackup(postgres(), name, { "keys.copy.gz": PLAIN });
    writeFileSync(join(backup, "keys.copy.gz"), PLAIN.toUpperCase());
    const pushed = pushBackup(
      place,
      { kind: "postgres", name },
      { ...work, backup, extra: undefined },
    );
    expect(await failureOf(pushed)).toMatch(/has changed since it was written/);
    expect(backupsIn(await place.remote.list(never))).toEqual([]);
  });

  test("the error for another identity names the existing ones, that for an empty target says that it has no backups", async () => {
    const target = targets["another disk"]!();
    const owner = await open(target, await makeIdentity());
    const stranger = await open(target, await makeIdentity());
    const choose = () =>
      failureOf(chooseOffsite(stranger, "postgres", undefined, now, never));
    expect(await choose()).toMatch(/has no backup yet/);
    await push(owner, "2026-11-20T030000Z", { "keys.copy.gz": PLAIN });
    expect(await choose()).toContain(
      `no backup for this identity (${stranger.folder}), only for others (${owner.folder})`,
    );
  });

  test("old backups are removed by the rules, with all files that no other backup needs", async () => {
    const target = targets["another disk"]!();
    const place = await open(target, await makeIdentity());
    const shared = { "keys.copy.gz": PLAIN };
    for (const day of ["01", "02", "10", "20"]) {
      await push(place, `2026-11-${day}T030000Z`, {
        ...shared,
        "spend.copy.gz": `of day ${day}`,
      });
    }
    const rules = { ...keep, daily: 2, weekly: 0, monthly: 0 };
    const prune = (most: number) =>
      pruneOffsite(
        place,
        { keep: { postgres: rules, notes: keep }, timeZone: "UTC", most, now },
        never,
      );
    expect((await prune(1e9)).removed).toBe(2);
    const objects = () =>
      filesBelow(join(target.files, place.folder, "objects"));
    expect(objects()).toHaveLength(3);
    const left = backupsIn(await place.remote.list(never));
    expect(left.map(({ name }) => name)).toEqual([
      "2026-11-20T030000Z",
      "2026-11-10T030000Z",
    ]);
    for (const backup of left) {
      await pullBackup(place, backup, join(testbed.directory, "f"), work);
    }

    // The limit removes the older one, and never the newest.
    const [newest] = await readEntries(place, left.slice(0, 1), never);
    const { bytes } = await prune(1e9);
    expect((await prune(bytes - 1)).removed).toBe(1);
    expect(await failureOf(prune(10))).toMatch(/raise `backups: at_most`/);
    expect(backupsIn(await place.remote.list(never))).toEqual([
      { kind: "postgres", name: newest?.name },
    ]);
    expect(objects()).toHaveLength(2);
  });

  test("an unreadable entry stops the removal before anything is deleted", async () => {
    const target = targets["another disk"]!();
    const place = await open(target, await makeIdentity());
    for (const name of ["2026-11-19T030000Z", "2026-11-20T030000Z"]) {
      await push(place, name, { "keys.copy.gz": name });
    }
    const before = filesBelow(target.files);
    const entry = before.find((path) => path.includes("2026-11-20")) ?? "";
    writeFileSync(entry, "nonsense");
    const pruned = pruneOffsite(
      place,
      {
        keep: { postgres: keep, notes: keep },
        timeZone: "UTC",
        most: 1e9,
        now,
      },
      never,
    );
    expect(await failureOf(pruned)).toMatch(/cannot decrypt an off-site file/);
    expect(filesBelow(target.files)).toEqual(before);
  });

  test("a missing target or a missing rclone is reported in one sentence", async () => {
    const identity = await makeIdentity();
    const env = { PATH };
    const unknown = { target: "nowhere:x", env, files: "" };
    const list = async (target: Target) =>
      failureOf((await open(target, identity)).remote.list(never));
    expect(await list(unknown)).toMatch(
      /^rclone lsjson failed at nowhere:x \(.*nowhere.*\): check the target/,
    );
    expect(await list({ ...unknown, env: { PATH: "/nonexistent" } })).toMatch(
      /^rclone is not installed on this machine: run `apt install rclone`/,
    );
  });
});

test("only the names of backups in a folder are listed", () => {
  const paths = [
    "backups/notes/2026-11-20T033000Z.age",
    "backups/other/2026-11-20T033000Z.age",
    "backups/postgres/latest.age",
    "objects/ab/cd.age",
  ];
  expect(backupsIn(new Map(paths.map((path) => [path, 1])))).toEqual([
    { kind: "notes", name: "2026-11-20T033000Z" },
  ]);
});
