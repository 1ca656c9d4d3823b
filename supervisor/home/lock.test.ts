import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { lockHome } from "./lock.ts";

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
