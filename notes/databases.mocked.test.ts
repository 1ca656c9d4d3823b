import { mkdtempSync, rmSync } from "node:fs";
import { rename } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { openDatabases } from "./databases.ts";
import { refusalOf } from "./refusal.ts";

/** Root can write to any file, but not to a disk that has become read-only. */
let isReadOnly = false;

vi.mock("node:fs/promises", async (original) => {
  const real = await original<{ readonly rename: typeof rename }>();
  return {
    ...real,
    rename: async (from: string, to: string) => {
      if (isReadOnly) {
        throw Object.assign(new Error("EROFS"), { code: "EROFS" });
      }
      await real.rename(from, to);
    },
  };
});

const directory = mkdtempSync(join(tmpdir(), "hearth-notes-databases-"));
afterEach(() => rmSync(directory, { recursive: true }));

test("a database whose removal fails remains, and is not created again over its old content", async () => {
  const databases = await openDatabases({
    directory,
    spoolDirectory: directory,
    passwordIterations: 1,
    historyMaxBytes: 1_000_000,
    idleMs: 60_000,
    events: {
      compacted: () => undefined,
      readOnly: () => undefined,
      failed: () => undefined,
      hung: () => undefined,
    },
  });
  try {
    await databases.create("vault");
    isReadOnly = true;
    const failure: unknown = await databases
      .remove("vault")
      .catch((error: unknown) => error);
    expect(refusalOf(failure).message).toContain("is read-only");
    expect(databases.names()).toEqual(["_users", "vault"]);
    await expect(databases.create("vault")).rejects.toMatchObject({
      code: "file_exists",
    });
    isReadOnly = false;
    await databases.remove("vault");
    expect(databases.names()).toEqual(["_users"]);
  } finally {
    await databases.close();
  }
});
