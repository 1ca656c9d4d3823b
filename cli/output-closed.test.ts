import { spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

test.skipIf(!existsSync("/dev/full"))(
  "output that a full disk does not take is an error",
  () => {
    const full = openSync("/dev/full", "w");
    const { status, stderr } = spawnSync(
      process.execPath,
      [join(import.meta.dirname, "main.ts"), "config"],
      { stdio: ["ignore", full, "pipe"], encoding: "utf8" },
    );
    closeSync(full);
    expect(stderr).toBe(
      "hearth: cannot write the output (ENOSPC): free space or write it elsewhere, then run the command again.\n",
    );
    expect(status).toBe(1);
  },
);
