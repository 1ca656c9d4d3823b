import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createPBKDF2Salt } from "octagonal-wheels/encryption/hkdf";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  expect,
  test,
} from "vitest";
import { openCouch } from "../../supervisor/vaults/couch.ts";
import { openHistory } from "../../supervisor/vaults/history-source.ts";
import { MirrorFolder } from "../../supervisor/vaults/mirror-folder.ts";
import { openMirrorGit } from "../../supervisor/vaults/mirror-git.ts";
import { NoteCipher } from "../../supervisor/vaults/note-cipher.ts";
import {
  mirrorVault,
  type MirrorOptions,
} from "../../supervisor/vaults/vault-mirror.ts";
import { remote, type Device } from "./devices.ts";
import { admin, ask, startNotes, type NotesProcess } from "./start-notes.ts";
import {
  newVaultDevice,
  type Encryption,
  type VaultDevice,
} from "./vault-device.ts";
import { encryptionOf } from "./vault-encryption.ts";

const PASSPHRASE = "not-a-secret-passphrase";
const salt = createPBKDF2Salt();
const saltText = Buffer.from(salt).toString("base64");
const encryption = encryptionOf(PASSPHRASE, salt);
const pollOptions = { timeout: 60_000 };

let notes: NotesProcess;
let server: Device;
let parent: string;
let directory: string;
let reports: string[];

beforeAll(async () => {
  notes = await startNotes();
});
afterAll(async () => {
  await notes.stop();
});
beforeEach(async () => {
  parent = mkdtempSync(join(tmpdir(), "hearth-mirror-"));
  directory = join(parent, "mirror");
  reports = [];
  await ask(`${notes.url}/vault`, { method: "PUT" });
  server = remote(notes.url, "vault", admin);
});
afterEach(async () => {
  rmSync(parent, { recursive: true });
  await ask(`${notes.url}/vault`, { method: "DELETE" });
});

/** Starts the mirror; `end` stops it and waits until it has ended. */
function mirror(
  more: Partial<MirrorOptions> & {
    readonly into?: string;
    readonly vault?: string;
  } = {},
): {
  readonly end: () => Promise<void>;
  readonly running: Promise<void>;
} {
  const stop = new AbortController();
  const couch = openCouch({ url: notes.url, password: () => admin.password });
  const stoppable: typeof couch = {
    ...couch,
    ask: async (method, path, options) =>
      await couch.ask(method, path, { ...options, signal: stop.signal }),
  };
  const report = (sentence: string): void => void reports.push(sentence);
  const { into = directory, vault = "vault" } = more;
  const run = async (): Promise<void> =>
    await mirrorVault({
      report,
      stop: stop.signal,
      folder: new MirrorFolder(into, vault, report),
      source: openHistory(stoppable, "vault"),
      cipher: new NoteCipher("vault", saltText, async () => PASSPHRASE),
      passed: async () => undefined,
      pause: async () => await sleep(50),
      ...more,
    });
  const running = run();
  // Awaited by `end`.
  running.catch(() => undefined);
  return {
    running,
    end: async () => {
      stop.abort();
      await running;
    },
  };
}

/** Reads the mirrored files with their content. */
const mirrored = (): Readonly<Record<string, string>> =>
  Object.fromEntries(
    existsSync(directory)
      ? readdirSync(directory, { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map((entry) =>
            relative(directory, join(entry.parentPath, entry.name)),
          )
          .filter((path) => !/^\.(?:git|hearth-mirror)\//.test(path))
          .map((path) => [path, readFileSync(join(directory, path), "utf8")])
      : [],
  );

async function device(used?: Encryption): Promise<{
  readonly vault: VaultDevice;
  /** Applies edits and syncs them. */
  readonly edit: (
    edits: (vault: VaultDevice) => Promise<void>,
  ) => Promise<void>;
  readonly files: () => Promise<Readonly<Record<string, string>>>;
}> {
  const vault = newVaultDevice(Date.now, used);
  return {
    vault,
    edit: async (edits) => {
      await edits(vault);
      await vault.sync(server);
    },
    files: async () => await vault.files(server),
  };
}

test.each([
  ["plain", undefined],
  ["encrypted (E2EE v2)", encryption],
])(
  "a vault, %s, is mirrored continuously, and a restart catches up",
  async (_name, used) => {
    const { edit, files } = await device(used);
    await edit(async (vault) => {
      await vault.write("a.md", "äß漢");
      await vault.write("daily/one.md", "one ".repeat(60_000));
      await vault.write("daily/two.md", "two");
    });
    const first = mirror();
    await expect.poll(mirrored, pollOptions).toEqual(await files());
    await edit(async (vault) => {
      await vault.write("a.md", "changed");
      await vault.write("new/b.md", "new");
      await vault.remove("daily/two.md");
      await vault.rename("daily/one.md", "moved/one.md");
    });
    await expect.poll(mirrored, pollOptions).toEqual(await files());
    expect(existsSync(join(directory, "daily"))).toBe(false);
    await first.end();

    rmSync(join(directory, "a.md"));
    await edit(async (vault) => {
      await vault.write("new/b.md", "while it was stopped");
      await vault.remove("moved/one.md");
      await vault.write("c.md", "c");
    });
    const second = mirror();
    await expect.poll(mirrored, pollOptions).toEqual(await files());
    await second.end();
    expect(reports).toEqual([]);
  },
);

test("what a killed first pass wrote is known to the next start, which updates and deletes it", async () => {
  const { edit, files } = await device();
  await edit(async (vault) => {
    await vault.write("changed.md", "one");
    await vault.write("daily/deleted.md", "two");
  });
  const source = openHistory(
    openCouch({ url: notes.url, password: () => admin.password }),
    "vault",
  );
  const killed = Promise.withResolvers<void>();
  mirror({
    source: {
      ...source,
      changes: async (since) => {
        if (since === "0") {
          return { ...(await source.changes(since)), more: true };
        }
        killed.resolve();
        return await new Promise(() => undefined);
      },
    },
  });
  await killed.promise;
  await edit(async (vault) => {
    await vault.write("changed.md", "one and more");
    await vault.remove("daily/deleted.md");
  });
  const second = mirror();
  await expect.poll(mirrored, pollOptions).toEqual(await files());
  await second.end();
  expect(reports).toEqual([]);
});

test("a file that was edited in the mirror is kept under another name when its note changes or is deleted", async () => {
  const { edit } = await device();
  await edit(async (vault) => {
    await vault.write("changed.md", "one");
    await vault.write("daily/deleted.md", "two");
  });
  const running = mirror();
  await expect
    .poll(mirrored, pollOptions)
    .toEqual({ "changed.md": "one", "daily/deleted.md": "two" });
  writeFileSync(join(directory, "changed.md"), "by hand");
  writeFileSync(join(directory, "daily/deleted.md"), "also by hand");
  writeFileSync(join(directory, "new.md"), "of another program");
  await edit(async (vault) => {
    await vault.write("changed.md", "two");
    await vault.remove("daily/deleted.md");
    await vault.write("new.md", "new");
  });
  await expect.poll(mirrored, pollOptions).toEqual({
    "changed.md": "two",
    "changed (edited in the mirror).md": "by hand",
    "daily/deleted (edited in the mirror).md": "also by hand",
    "new.md": "new",
    "new (edited in the mirror).md": "of another program",
  });
  await running.end();
  expect(reports.toSorted()).toEqual([
    "changed.md was edited in the mirror; the edited file is now changed (edited in the mirror).md.",
    "daily/deleted.md was edited in the mirror; the edited file is now daily/deleted (edited in the mirror).md.",
    "new.md was edited in the mirror; the edited file is now new (edited in the mirror).md.",
  ]);
});

test("names that cannot be mirrored are reported once; none leads out of the folder or into git's directory", async () => {
  const { edit } = await device();
  const long = `${"x".repeat(300)}.md`;
  const reserved = [".git/hooks/pre-commit", "a/.GIT /config", "git~1/config"];
  await edit(async (vault) => {
    for (const path of ["../out.md", long, ...reserved, "held.md"]) {
      await vault.write(path, "text");
    }
  });
  const passes: number[] = [];
  const running = mirror({
    passed: async ({ leftOut }) => void passes.push(leftOut),
  });
  await expect.poll(mirrored, pollOptions).toEqual({ "held.md": "text" });
  await expect.poll(() => passes, pollOptions).toEqual([5]);
  await running.end();
  expect(reports.toSorted()).toEqual(
    [
      "Not written: ../out.md (the name leads out of the folder).",
      `Not written: ${long} (the name is too long).`,
      ...reserved.map((path) => `Not written: ${path} (the name is reserved).`),
    ].toSorted(),
  );
  expect(readdirSync(parent)).toEqual(["mirror"]);
});

test("a note with a missing part is written once the part arrives, and other notes are not delayed", async () => {
  const { edit, vault } = await device();
  await edit(async (each) => each.write("whole.md", "whole"));
  await vault.write("late.md", "late");
  // The note without its chunk, as during an upload.
  await vault.local.replicate.to(server, {
    selector: { type: { $ne: "leaf" } },
  });
  const running = mirror();
  await expect.poll(() => reports.length, pollOptions).toBe(1);
  expect(reports[0]).toContain('part of "late.md" is missing');
  expect(mirrored()).toEqual({ "whole.md": "whole" });
  await vault.local.replicate.to(server, { selector: { type: "leaf" } });
  await edit(async (each) => each.write("whole.md", "more"));
  await expect
    .poll(mirrored, pollOptions)
    .toEqual({ "whole.md": "more", "late.md": "late" });
  await running.end();
});

test("the mirror continues when the store is available again", async () => {
  const { edit, files } = await device();
  await edit(async (vault) => vault.write("a.md", "before"));
  const running = mirror();
  await expect.poll(mirrored, pollOptions).toEqual(await files());
  await notes.kill("SIGKILL");
  await expect.poll(() => reports.length, pollOptions).toBeGreaterThan(0);
  notes = await notes.restart();
  await edit(async (vault) => vault.write("b.md", "after"));
  await expect.poll(mirrored, pollOptions).toEqual(await files());
  await running.end();
  for (const report of reports) {
    expect(report).toContain("does not respond");
  }
});

test("a wrong passphrase or a folder that is not a mirror of the vault is rejected before anything is written", async () => {
  const { edit } = await device(encryption);
  await edit(async (vault) => vault.write("a.md", "text"));
  const wrong = mirror({
    cipher: new NoteCipher("vault", saltText, async () => "wrong"),
  });
  await expect(wrong.running).rejects.toThrow("wrong passphrase");
  expect(mirrored()).toEqual({});
  await expect(mirror({ vault: "other" }).running).rejects.toThrow(
    "is a mirror of vault vault",
  );
  await expect(mirror({ into: parent }).running).rejects.toThrow(
    "is not empty and not a mirror",
  );
  const right = mirror();
  await expect.poll(mirrored, pollOptions).toEqual({ "a.md": "text" });
  await right.end();
});

test("a note that cannot be decrypted is reported, its file stays, and all others are mirrored", async () => {
  const { edit } = await device(encryption);
  const poison = async (id: string, rev?: string): Promise<void> => {
    const answer = await ask(`${notes.url}/vault/${encodeURIComponent(id)}`, {
      method: "PUT",
      json: { _rev: rev, type: "plain", path: "/\\:%=poison", children: [] },
    });
    expect(answer.status).toBe(201);
  };
  await poison("first");
  await edit(async (vault) => vault.write("a.md", "one"));
  const running = mirror();
  await expect.poll(mirrored, pollOptions).toEqual({ "a.md": "one" });
  const found = await ask(`${notes.url}/vault/_all_docs?include_docs=true`);
  const { rows } = (await found.json()) as {
    readonly rows: readonly {
      readonly id: string;
      readonly doc: { readonly _rev: string; readonly path?: string };
    }[];
  };
  const note = rows.find(({ id, doc }) => id !== "first" && doc.path);
  await poison(note?.id ?? "", note?.doc._rev);
  await edit(async (vault) => vault.write("b.md", "two"));
  await expect.poll(mirrored, pollOptions).toEqual({
    "a.md": "one",
    "b.md": "two",
  });
  await running.end();
  expect(reports).toEqual(
    ["first", note?.id].map(
      (id) => `Not written: note ${id} (it is damaged or cannot be decrypted).`,
    ),
  );
});

test("with git, the changes of every 15 minutes are one commit", async () => {
  let now = Date.UTC(2026, 10, 22, 18);
  const { edit } = await device();
  const write = async (text: string): Promise<void> => {
    await edit(async (vault) => {
      await vault.write("a.md", text);
      await vault.write(".gitignore", "*.md");
    });
  };
  const log = (): string =>
    execFileSync("git", ["-C", directory, "log", "--format=%s"], {
      encoding: "utf8",
    });
  await write("first");
  execFileSync("git", ["init", "--quiet", directory]);
  const git = await openMirrorGit(directory, "vault", () => now);
  let passes = 0;
  const running = mirror({
    passed: async () => {
      await git.commitIfDue();
      passes += 1;
    },
  });
  await expect.poll(() => passes, pollOptions).toBe(1);
  expect(log()).toBe("Vault vault at 2026-11-22T18:00:00.000Z\n");
  now += 14 * 60_000;
  await write("second");
  await expect.poll(() => mirrored()["a.md"], pollOptions).toBe("second");
  await expect.poll(() => passes, pollOptions).toBeGreaterThan(1);
  expect(log()).toBe("Vault vault at 2026-11-22T18:00:00.000Z\n");
  now += 60_000;
  await write("third");
  await expect
    .poll(() => log(), pollOptions)
    .toBe(
      "Vault vault at 2026-11-22T18:15:00.000Z\nVault vault at 2026-11-22T18:00:00.000Z\n",
    );
  const show = (revision: string): string =>
    execFileSync("git", ["-C", directory, "show", `${revision}:a.md`], {
      encoding: "utf8",
    });
  expect([show("HEAD~1"), show("HEAD")]).toEqual(["first", "third"]);
  await running.end();
  await git.commit();
  expect(log().trim().split("\n")).toHaveLength(2);
  const tracked = execFileSync("git", ["-C", directory, "ls-files"], {
    encoding: "utf8",
  });
  expect(tracked).toBe(".gitignore\na.md\n");
});
