import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
  type renameSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { syncTree } from "../core/durable-file.ts";
import { moveDirectory } from "./home.ts";

const sync = vi.hoisted(() => vi.fn<typeof syncTree>());
vi.mock("../core/durable-file.ts", async (original) => ({
  ...(await original<typeof import("../core/durable-file.ts")>()),
  syncTree: sync,
}));

/** The target is on another file system. */
vi.mock("node:fs", async (original) => {
  const real = await original<{ readonly renameSync: typeof renameSync }>();
  return {
    ...real,
    renameSync: (from: string, to: string) => {
      if (to.endsWith("/to") && !from.endsWith(".moving")) {
        throw Object.assign(new Error("cross-device link"), { code: "EXDEV" });
      }
      real.renameSync(from, to);
    },
  };
});

let directory: string;
let from: string;
let to: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-move-"));
  [from, to] = [join(directory, "from"), join(directory, "to")];
  mkdirSync(from);
  writeFileSync(join(from, "secrets.json"), "secrets");
  sync.mockReset();
});
afterEach(() => rmSync(directory, { recursive: true }));

test("data that is moved to another disk is removed only when the copy is on it", async () => {
  sync.mockImplementation(async (copy) => {
    expect(readFileSync(join(copy, "secrets.json"), "utf8")).toBe("secrets");
    expect(existsSync(to)).toBe(false);
    throw new Error("the disk failed");
  });
  await expect(moveDirectory(from, to)).rejects.toThrow("the disk failed");
  expect(readFileSync(join(from, "secrets.json"), "utf8")).toBe("secrets");
  sync.mockResolvedValue();
  await moveDirectory(from, to);
  expect(sync).toHaveBeenCalledTimes(2);
  expect(readdirSync(directory)).toEqual(["to"]);
  expect(readFileSync(join(to, "secrets.json"), "utf8")).toBe("secrets");
});
