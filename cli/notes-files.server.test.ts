import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPBKDF2Salt } from "octagonal-wheels/encryption/hkdf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { remote, type Device } from "../test/contract/devices.ts";
import {
  admin,
  ask,
  startNotes,
  type NotesProcess,
} from "../test/contract/start-notes.ts";
import {
  newVaultDevice,
  type VaultDevice,
} from "../test/contract/vault-device.ts";
import { encryptionOf } from "../test/contract/vault-encryption.ts";
import {
  runHearth,
  startHearth,
  type CommandResult,
} from "../test/supervisor/hearth-command.ts";
import { temporaryHome } from "../test/supervisor/temporary-home.ts";
import { waitFor } from "../test/wait-for.ts";
import { startWatcher, type Watcher } from "../embedded/watcher.ts";

const OPERATOR_PASSWORD = "operator-password-of-the-test";
const PASSPHRASE = "not-a-secret-passphrase";

let notes: NotesProcess;
let place: ReturnType<typeof temporaryHome>;
let watcher: Watcher;

beforeAll(async () => {
  notes = await startNotes();
  place = temporaryHome();
  const config = join(place.directory, "supervisor.yaml");
  writeFileSync(config, "notes:\n  first_vault: off\nchecks: []\n");
  watcher = await startWatcher({
    home: place.home,
    env: {
      HEARTH_SUPERVISOR_CONFIG: config,
      HEARTH_SUPERVISOR_PORT: "0",
      HEARTH_OPERATOR_PASSWORD: OPERATOR_PASSWORD,
      HEARTH_JOBS: "on",
      NOTES_URL: notes.url,
      NOTES_ADMIN_PASSWORD: admin.password,
    },
    runtime: "none",
    onNotice: () => {},
    onService: () => {},
    onCheck: () => {},
  });
});
afterAll(async () => {
  await watcher.stop();
  await notes.stop();
  place.remove();
});

const environment = (): Readonly<Record<string, string>> => ({
  HEARTH_HOME: place.home.root,
  HEARTH_URL: watcher.address,
  HEARTH_OPERATOR_PASSWORD: OPERATOR_PASSWORD,
});
const hearth = (...words: readonly string[]): Promise<CommandResult> =>
  runHearth(["notes", ...words], environment());

describe.each([
  ["plain", false],
  ["encrypted", true],
])("a vault, %s", (name, isEncrypted) => {
  const vault = `vault-${name}`;
  let directory: string;
  let device: VaultDevice;
  let server: Device;
  let more: readonly string[];
  const inFolder = (...path: readonly string[]): string =>
    readFileSync(join(directory, ...path), "utf8");

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "hearth-notes-files-"));
    const file = join(directory, "passphrase");
    writeFileSync(file, `${PASSPHRASE}\n`);
    more = isEncrypted ? ["--passphrase-file", file] : [];
    await ask(`${notes.url}/${vault}`, { method: "PUT" });
    const salt = createPBKDF2Salt();
    await ask(
      `${notes.url}/${vault}/_local/obsidian_livesync_sync_parameters`,
      {
        method: "PUT",
        json: {
          protocolVersion: 2,
          pbkdf2salt: Buffer.from(salt).toString("base64"),
        },
      },
    );
    device = newVaultDevice(
      Date.now,
      isEncrypted ? encryptionOf(PASSPHRASE, salt) : undefined,
    );
    server = remote(notes.url, vault, admin);
    await device.write("daily/a.md", "first äß漢");
    await device.write("b.md", "b");
    await device.sync(server);
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  test("export writes its files into a new folder, once", async () => {
    const copy = join(directory, "copy");
    const { code, out } = await hearth("export", vault, copy, ...more);
    expect(out).toContain(`exported to ${copy}: 2 files.`);
    expect(code).toBe(0);
    expect(inFolder("copy", "daily/a.md")).toBe("first äß漢");
    expect(inFolder("copy", "b.md")).toBe("b");
    const again = await hearth("export", vault, copy, ...more);
    expect(again.code).toBe(1);
    expect(again.error).toContain("is not empty");
  });

  test("space of a folder that does not exist is a usage error", async () => {
    expect(await hearth("space", vault, "nosuch", ...more)).toMatchObject({
      code: 2,
      error: `hearth: folder "nosuch" not found. Run \`hearth notes space ${vault}\` for the folders of the vault.\n`,
    });
  });

  test("collect counts unused chunks and deletes none too early", async () => {
    await ask(`${notes.url}/${vault}/h:+unused`, {
      method: "PUT",
      json: { type: "leaf", data: "u".repeat(2000) },
    });
    const { code, out } = await hearth("collect", vault, "--yes", ...more);
    expect(out).toContain("1 chunk (2 kB) not used");
    expect(out).toContain("0 chunks (0 B) for 30 days");
    expect(code).toBe(0);
    const json = await hearth("collect", vault, "--json", ...more);
    expect(JSON.parse(json.out)).toMatchObject({
      unused: { count: 1 },
      old: { count: 0 },
      freed: { count: 0 },
      waitingFor: [],
    });
    const forgotten = await hearth(
      "collect",
      vault,
      "--forget",
      "phone",
      ...more,
    );
    expect(forgotten.code).toBe(1);
    expect(forgotten.error).toContain('no device or checkpoint "phone"');
  });

  test("history lists the versions of a note, and restore restores one", async () => {
    const at = new Date().toISOString();
    await device.write("daily/a.md", "second");
    await device.sync(server);
    const listed = await hearth(
      "history",
      vault,
      "daily/a.md",
      "--json",
      ...more,
    );
    expect(listed.code).toBe(0);
    expect(JSON.parse(listed.out)).toMatchObject([
      { path: "daily/a.md", until: null },
      { path: "daily/a.md" },
    ]);
    const past = await hearth("history", vault, "--at", at, "--json", ...more);
    const paths = (JSON.parse(past.out) as { path: string }[]).map(
      ({ path }) => path,
    );
    expect(paths).toEqual(["b.md", "daily/a.md"]);
    const differs = async (...words: readonly string[]) => {
      const done = await hearth("history", vault, ...words, ...more);
      expect(done).toMatchObject({ code: 0, error: "" });
      return done.out;
    };
    expect(await differs("--at", at, "--diff")).toMatch(
      /^1 file differs from .*\n.*\ndaily\/a\.md +changed +\d+$/m,
    );
    expect(await differs("daily/a.md", "--at", at, "--diff")).toMatch(
      /^-first äß漢\n.*\n\+second$/m,
    );
    expect(await differs("b.md", "--at", at, "--diff")).toContain(
      "b.md has not changed since",
    );
    const restored = await hearth(
      "restore",
      vault,
      "daily",
      "--at",
      at,
      ...more,
    );
    expect(restored.out).toContain("1 written, 0 deleted, 0 unchanged");
    expect(restored.code).toBe(0);
    await device.sync(server);
    expect(await device.files(server)).toEqual({
      "daily/a.md": "first äß漢",
      "b.md": "b",
    });
  });

  test("mirror follows the vault until it is stopped, and commits with --git", async () => {
    const folder = join(directory, "mirror");
    const mirror = startHearth(
      ["notes", "mirror", vault, folder, "--git", ...more],
      environment(),
    );
    await waitFor("the first pass", () => mirror.out().includes("2 files."));
    await device.write("b.md", "live");
    await device.remove("daily/a.md");
    await device.sync(server);
    await waitFor(
      "the change",
      () =>
        inFolder("mirror", "b.md") === "live" &&
        !existsSync(join(folder, "daily")),
    );
    mirror.child.kill("SIGINT");
    const { code, error } = await mirror.ended;
    expect(error).toBe("");
    expect(code).toBe(0);
    const git = (...words: readonly string[]): string =>
      execFileSync("git", ["-C", folder, ...words], { encoding: "utf8" });
    expect(git("log", "--format=%an").trim().split("\n")).toEqual([
      "Hearth",
      "Hearth",
    ]);
    expect(git("show", "HEAD~1:daily/a.md")).toBe("first äß漢");
    expect(git("ls-files")).toBe("b.md\n");
  });
});

test("every command reports a missing passphrase of an encrypted vault in one sentence", async () => {
  const folder = join(place.directory, "none");
  for (const words of [
    ["collect", "vault-encrypted"],
    ["export", "vault-encrypted", folder],
    ["history", "vault-encrypted", "b.md"],
    ["mirror", "vault-encrypted", folder],
  ]) {
    const { code, error } = await hearth(...words);
    expect(error).toContain(
      'vault "vault-encrypted" is encrypted: set its passphrase',
    );
    expect(code).toBe(1);
  }
  expect(existsSync(join(folder, "b.md"))).toBe(false);
});
