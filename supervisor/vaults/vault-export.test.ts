import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { HistorySource } from "./history-source.ts";
import { NoteCipher } from "./note-cipher.ts";
import { exportVault } from "./vault-export.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-export-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const image = Buffer.from([0, 255, 128, 7]);
const CHUNKS = new Map([
  ["h:a", "äß漢 "],
  ["h:b", "two"],
  ["h:i", image.toString("base64")],
]);
const note = (
  path: string,
  members: Readonly<Record<string, unknown>> = {},
) => ({
  since: 0,
  until: null,
  doc: {
    _id: path,
    _rev: "1-a",
    type: "plain",
    path,
    children: ["h:a", "h:b"],
    mtime: 1_700_000_000_000,
    ctime: 1,
    size: 3,
    ...members,
  },
});

function sourceOf(rows: readonly ReturnType<typeof note>[]): HistorySource {
  return {
    notesAt: async (at: number) => ({ at, rows: [...rows], next: null }),
    chunks: async (ids: readonly string[]) =>
      ids.flatMap((_id) => {
        const data = CHUNKS.get(_id);
        return data === undefined ? [] : [{ _id, _rev: "1-a", data }];
      }),
  } as unknown as HistorySource;
}

const cipher = new NoteCipher("vault", null, async () => "");

test("notes, attachments and hidden files are written as on a device; deleted ones and the plugin's own are not", async () => {
  const source = sourceOf([
    note("daily/a.md"),
    note("image.png", { type: "newnote", children: ["h:i"] }),
    note("i:.obsidian/app.json", { children: ["h:b"] }),
    note("gone.md", { deleted: true }),
    note("ps:device/plugin"),
  ]);
  const exported = await exportVault(source, cipher, join(directory, "new"), 7);
  expect(exported).toEqual({ at: 7, files: 3, left: [] });
  const read = (path: string) => readFileSync(join(directory, "new", path));
  expect(read("daily/a.md").toString()).toBe("äß漢 two");
  expect(read("image.png")).toEqual(image);
  expect(read(".obsidian/app.json").toString()).toBe("two");
  expect(readdirSync(join(directory, "new")).toSorted()).toEqual([
    ".obsidian",
    "daily",
    "image.png",
  ]);
});

test("names that the file system rejects are reported, and no path leaves the folder", async () => {
  const long = `${"x".repeat(300)}.md`;
  const exported = await exportVault(
    sourceOf([
      note("../out.md"),
      note("/etc/out.md"),
      note(long),
      note("a"),
      note("a/b.md"),
    ]),
    cipher,
    join(directory, "new"),
    7,
  );
  expect(exported.files).toBe(1);
  expect(exported.left.map(({ path }) => path)).toEqual([
    "../out.md",
    "/etc/out.md",
    long,
    "a/b.md",
  ]);
  expect(readdirSync(directory)).toEqual(["new"]);
});

test("a note of which a part is missing is reported, and all others are written", async () => {
  const source = sourceOf([
    note("a.md"),
    note("half.md", { children: ["h:a", "h:missing"] }),
    note("z.md"),
  ]);
  const exported = await exportVault(source, cipher, directory, 7);
  expect(exported).toEqual({
    at: 7,
    files: 2,
    left: [{ path: "half.md", why: "part of it is missing on the server" }],
  });
  expect(readdirSync(directory).toSorted()).toEqual(["a.md", "z.md"]);
});

test("a note that cannot be decrypted is reported, and all others are written", async () => {
  const source = sourceOf([
    note("f:1", { path: "/\\:%=poison" }),
    note("a.md"),
    note("f:2", { path: "/\\:" }),
    note("half.md", { children: ["h:a", "h:poison"] }),
  ]);
  const chunks: HistorySource["chunks"] = async (ids) => [
    ...(await source.chunks(ids)),
    ...ids
      .filter((id) => id === "h:poison")
      .map((_id) => ({ _id, _rev: "1-a", data: "%=", e_: true })),
  ];
  const target = join(directory, "new");
  expect(await exportVault({ ...source, chunks }, cipher, target, 7)).toEqual({
    at: 7,
    files: 1,
    left: [
      { path: "f:1", why: "it is damaged or cannot be decrypted" },
      { path: "f:2", why: "it is damaged or cannot be decrypted" },
      { path: "half.md", why: "part of it cannot be decrypted" },
    ],
  });
  expect(readdirSync(target)).toEqual(["a.md"]);
});

test("nothing is exported if no note can be decrypted", async () => {
  await expect(
    exportVault(
      sourceOf([note("f:1", { path: "/\\:%=poison" })]),
      cipher,
      directory,
      7,
    ),
  ).rejects.toThrow("has lost its security seed");
});

test("the largest chunks of an encrypted file are read in answers that a command accepts", async () => {
  // 102,400 bytes times customChunkSize + 1, in base64, encrypted, and in base64 again.
  const largest = (102_400 * 61 * 16) / 9;
  const children = Array.from({ length: 9 }, (_, at) => `h:${at}`);
  const requests: number[] = [];
  const source = {
    ...sourceOf([note("video.mp4", { children })]),
    chunks: async (ids: readonly string[]) => {
      requests.push(ids.length);
      return ids.map((_id) => ({ _id, _rev: "1-a", data: _id }));
    },
  } as unknown as HistorySource;
  await exportVault(source, cipher, join(directory, "new"), 7);
  const read = readFileSync(join(directory, "new", "video.mp4"), "utf8");
  expect(read).toBe(children.join(""));
  expect(Math.max(...requests) * largest).toBeLessThan(64 * 1024 * 1024);
});

test.runIf(process.platform === "linux")(
  "a folder that the system does not create is an error",
  async () => {
    await expect(
      exportVault(sourceOf([]), cipher, "/proc/hearth/copy", 1),
    ).rejects.toThrow("cannot create or read /proc/hearth/copy");
  },
);

test("an interrupted export leaves no files in the folder, and the next one replaces what it left", async () => {
  const source = sourceOf([note("a.md"), note("daily/z.md")]);
  let reads = 0;
  const chunks: HistorySource["chunks"] = async (ids) => {
    reads += 1;
    if (reads > 1) {
      throw new Error("killed");
    }
    return source.chunks(ids);
  };
  await expect(
    exportVault({ ...source, chunks }, cipher, directory, 7),
  ).rejects.toThrow("killed");
  expect(readdirSync(directory)).toEqual([".hearth-unfinished-export"]);
  expect(
    await exportVault(sourceOf([note("b.md")]), cipher, directory, 8),
  ).toMatchObject({ at: 8, files: 1 });
  expect(readdirSync(directory)).toEqual(["b.md"]);
});

test("a note with the name of the export's own folder is reported", async () => {
  const path = ".Hearth-unfinished-export/a.md";
  const source = sourceOf([note(path), note("b.md")]);
  const exported = await exportVault(source, cipher, directory, 7);
  expect(exported.left).toEqual([
    { path, why: "an export uses the name itself" },
  ]);
  expect(readdirSync(directory)).toEqual(["b.md"]);
});

test("a folder that is not empty is rejected and left unchanged", async () => {
  const source = sourceOf([note("a.md")]);
  await exportVault(source, cipher, directory, 7);
  await expect(exportVault(source, cipher, directory, 7)).rejects.toThrow(
    "is not empty",
  );
});
