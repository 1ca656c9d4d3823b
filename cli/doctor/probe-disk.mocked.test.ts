import { mkdtempSync, rmSync } from "node:fs";
import { utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { locateHome } from "../../supervisor/home/home.ts";
import { probeDisk } from "./probe-files.ts";

vi.mock("node:fs/promises", async (importActual) => {
  const actual = await importActual<typeof import("node:fs/promises")>();
  return { ...actual, utimes: vi.fn(actual.utimes) };
});

const directory = mkdtempSync(join(tmpdir(), "hearth-doctor-disk-"));
const home = locateHome({ HEARTH_HOME: join(directory, "home") });

afterAll(() => rmSync(directory, { recursive: true }));

test("a read-only file system is found, also before the first start", async () => {
  expect(await probeDisk(home)).not.toMatchObject({
    text: expect.stringContaining("read-only") as string,
  });
  vi.mocked(utimes).mockRejectedValueOnce(
    Object.assign(new Error("EROFS: read-only file system"), { code: "EROFS" }),
  );
  expect(await probeDisk(home)).toEqual({
    subject: "disk",
    level: "wrong",
    text: `${directory} cannot be used: its file system is read-only.`,
    fix: "check the disk (`dmesg`)",
  });
});
