import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { lockFile, waitForLock } from "./file-lock.ts";

let directory = "";
let path = "";

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-test-lock-"));
  path = join(directory, "lock");
});

afterEach(() => rmSync(directory, { recursive: true }));

test("another process gets the lock only after this one was killed, even if nothing refers to the lock", async () => {
  const holder = spawn(
    process.execPath,
    [
      "--expose-gc",
      "--input-type=module",
      "-e",
      `const { lockFile } = await import(${JSON.stringify(new URL("./file-lock.ts", import.meta.url).href)});
       const locked = lockFile(${JSON.stringify(path)}) !== undefined;
       gc();
       await new Promise((resolve) => setTimeout(resolve, 10));
       gc();
       console.log(locked);
       setInterval(() => {}, 1e6);`,
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  try {
    const [output] = (await once(holder.stdout, "data")) as [Buffer];
    expect(output.toString()).toBe("true\n");
    expect(lockFile(path)).toBeUndefined();
    holder.kill("SIGKILL");
    await once(holder, "exit");
    lockFile(path)?.release();
  } finally {
    holder.kill("SIGKILL");
  }
  const lock = lockFile(path);
  expect(lock).toBeDefined();
  lock?.release();
});

test("a released lock can be taken again; releasing it twice changes nothing", () => {
  const first = lockFile(path);
  expect(lockFile(path)).toBeUndefined();
  first?.release();
  const second = lockFile(path);
  first?.release();
  expect(lockFile(path)).toBeUndefined();
  second?.release();
});

test("a file that is not a database is an error, not a lock", () => {
  writeFileSync(path, "not a database".repeat(500));
  expect(() => lockFile(path)).toThrow("file is not a database");
});

test.each([
  [
    "in a missing directory",
    () => join(directory, "missing", "lock"),
    "ENOENT",
  ],
  ["that is a directory", () => directory, "EISDIR"],
])(
  "a file %s is reported with its path and the cause",
  (_which, file, code) => {
    expect(() => lockFile(file())).toThrow(
      expect.objectContaining({ code, path: file() }),
    );
  },
);

test("a lock is waited for until it is released, or for a limited time", async () => {
  const lock = lockFile(path);
  expect(await waitForLock(path, 1)).toBeUndefined();
  const waiting = waitForLock(path, 60_000);
  lock?.release();
  (await waiting)?.release();
  expect(await waiting).toBeDefined();
});
