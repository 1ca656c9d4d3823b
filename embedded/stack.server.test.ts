import { expect, test } from "vitest";
import { createHome } from "../supervisor/home/home.ts";
import { lockHome } from "../supervisor/home/lock.ts";
import { writeRunFile } from "../supervisor/runtimes/process/run-file.ts";
import { temporaryHome } from "../test/supervisor/temporary-home.ts";
import { startStack } from "./stack.ts";

test("of two starts after a kill, the second one does not report the killed supervisor as running", async () => {
  const { home, remove } = temporaryHome();
  createHome(home);
  writeRunFile(home.runFile, {
    supervisor: {
      pid: process.pid,
      startTime: "of a process that has ended",
      address: "http://127.0.0.1:4080",
      port: 4080,
    },
    services: {},
  });
  const lock = lockHome(home.lock);
  try {
    await expect(
      startStack({
        home,
        env: {},
        echo: false,
        onService: () => {},
        onCheck: () => {},
        onNotice: () => {},
        onStopRequested: () => {},
        upgradeFrom: undefined,
        notices: [],
        stop: new AbortController().signal,
        halt: new AbortController().signal,
      }),
    ).rejects.toThrow(/^another `hearth up` is starting or stopping on /);
  } finally {
    lock?.release();
    remove();
  }
});
