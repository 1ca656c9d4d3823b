import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { beginBackup } from "./backup-files.ts";
import { Copies } from "./copies.ts";
import { listBackups } from "./manifest.ts";
import { pruneBackups } from "./prune-backups.ts";
import { makeRoom } from "./size-cap.ts";

/** A removal ends after one file of a directory, the last one by name, as when the process is killed. */
const kill = vi.hoisted(() => ({ isSet: false }));
vi.mock(import("node:fs"), async (importOriginal) => {
  const fs = await importOriginal();
  const rmSync: typeof fs.rmSync = (path, options) => {
    const directory = String(path);
    const files =
      kill.isSet && fs.existsSync(directory) ? fs.readdirSync(directory) : [];
    const file = files.toSorted().at(-1);
    if (file === undefined) {
      return fs.rmSync(path, options);
    }
    fs.rmSync(`${directory}/${file}`);
    throw new Error("killed");
  };
  return { ...fs, rmSync, default: { ...fs.default, rmSync } };
});

const KEEP_ONE = { daily: 1, weekly: 0, monthly: 0 };
const NAMES = ["2026-11-01T030000Z", "2026-11-21T030000Z"] as const;
const NOW = Date.UTC(2026, 10, 21, 4);

let place: ReturnType<typeof temporaryHome>;
let parent: string;

beforeEach(() => {
  place = temporaryHome();
  parent = join(place.directory, "notes");
  for (const name of NAMES) {
    mkdirSync(join(parent, name), { recursive: true });
    writeFileSync(join(parent, name, "manifest.json"), "{}");
    writeFileSync(join(parent, name, "vault-1.jsonl.gz"), "");
  }
});
afterEach(() => {
  kill.isSet = false;
  place.remove();
});

const killed = (work: () => void): void => {
  kill.isSet = true;
  expect(work).toThrow("killed");
  kill.isSet = false;
};

test.each([
  ["an expired one", () => void pruneBackups(parent, KEEP_ONE, "UTC", NOW)],
  [
    "one beyond the limit",
    () => void makeRoom(place.directory, "notes", 5, NOW),
  ],
])(
  "a process that is killed while it removes %s leaves no damaged backup",
  (_which, remove) => {
    killed(remove);
    expect(listBackups(parent)).toEqual([NAMES[1]]);
    beginBackup(parent, "2026-11-22T030000Z").finish();
    expect(readdirSync(parent).toSorted()).toEqual([
      NAMES[1],
      "2026-11-22T030000Z",
    ]);
  },
);

test("copies are listed and received after a process was killed while it removed an expired one", async () => {
  let now = NOW;
  const copies = new Copies(join(place.directory, "copies"), {
    most: 1e9,
    keep: () => KEEP_ONE,
    timeZone: "UTC",
    now: () => now,
  });
  await receive(copies, "2026-11-18T030000Z");
  now += 3 * 86_400_000;
  kill.isSet = true;
  await expect(receive(copies, "2026-11-21T030000Z")).rejects.toThrow("killed");
  kill.isSet = false;
  await receive(copies, "2026-11-22T030000Z");
  expect(copies.list().map(({ name }) => name)).toEqual([
    "2026-11-22T030000Z",
    "2026-11-21T030000Z",
  ]);
  expect(readdirSync(join(place.directory, "copies", "notes"))).toHaveLength(2);
});

async function receive(copies: Copies, name: string): Promise<void> {
  const copy = { kind: "notes", name, keyId: "00000000" };
  const file = await copies.store(copy, "a.gz", Readable.from(["a"]));
  await copies.complete(copy, { keyId: copy.keyId, files: [file] });
}
