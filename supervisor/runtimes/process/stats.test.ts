import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { statsOf } from "./stats.ts";

/** Starts a child of its own, and prints a line once that runs. */
const PARENT = `
const { spawn } = require("node:child_process");
const child = spawn(process.execPath, ["-e", "console.log(1); process.stdin.resume()"], { stdio: "pipe" });
child.stdout.once("data", () => console.log("ready"));
process.stdin.resume().on("end", () => process.exit());`;

test("the children of a service with workers count too", async () => {
  const parent = spawn(process.execPath, ["-e", PARENT]);
  try {
    await once(parent.stdout, "data");
    const pid = parent.pid ?? 0;
    const alone = statsOf(pid)?.memoryBytes ?? 0;
    // Node itself takes more than this, in each process.
    const node = 20 * 2 ** 20;
    expect(alone).toBeGreaterThan(node);
    expect(statsOf(pid, true)?.memoryBytes).toBeGreaterThan(alone + node);
  } finally {
    parent.stdin.end();
    await once(parent, "exit");
  }
  expect(statsOf(parent.pid ?? 0, true)).toBeUndefined();
});
