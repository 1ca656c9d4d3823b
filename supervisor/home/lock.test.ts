import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { lockHome } from "./lock.ts";
import { projectRoot } from "./home.ts";

test("only one supervisor gets the lock of a home, until it is released or the process is killed", async () => {
  const place = temporaryHome();
  const path = join(place.directory, "lock");
  const source = join(projectRoot, "supervisor", "home", "lock.ts");
  const holder = spawn(
    process.execPath,
    [
      "--input-type=module",
      "-e",
      `const { lockHome } = await import(${JSON.stringify(source)});
       console.log(lockHome(${JSON.stringify(path)}) !== undefined);
       setInterval(() => {}, 1e6);`,
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  try {
    const [output] = (await once(holder.stdout, "data")) as [Buffer];
    expect(output.toString()).toBe("true\n");
    expect(lockHome(path)).toBeUndefined();
    holder.kill("SIGKILL");
    await once(holder, "exit");
    const lock = lockHome(path);
    expect(lock).toBeDefined();
    lock?.release();
    lockHome(path)?.release();
  } finally {
    holder.kill("SIGKILL");
    place.remove();
  }
});

test("a damaged lock file is replaced and can be locked again", () => {
  const place = temporaryHome();
  const path = join(place.directory, "lock");
  try {
    for (const damage of [
      () => writeFileSync(path, "not a database".repeat(500)),
      () => mkdirSync(path),
    ]) {
      damage();
      const lock = lockHome(path);
      expect(lock).toBeDefined();
      expect(lockHome(path)).toBeUndefined();
      lock?.release();
      rmSync(path);
    }
  } finally {
    place.remove();
  }
});
