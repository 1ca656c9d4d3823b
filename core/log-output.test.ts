import { spawnSync } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { createSmallDisk } from "../test/servers/small-disk.ts";
import { droppedLogLines, openLogOutput } from "./log-output.ts";

const moduleUrl = new URL("./log-output.ts", import.meta.url).href;

test.each([true, false])(
  "a program keeps working and exits when its log cannot be written (sync: %s)",
  (sync) => {
    const full = openSync("/dev/full", "w");
    const program = `
      import { pino } from "pino";
      import { droppedLogLines, openLogOutput } from "${moduleUrl}";
      const log = pino({}, openLogOutput(1, { sync: ${sync} }));
      for (let count = 0; count < 5; count += 1) log.info("a line");
      await new Promise((resolve) => setTimeout(resolve, 100));
      process.stderr.write(String(droppedLogLines()));
      log.info("the last line");
      process.exit(7);`;
    const done = spawnSync(
      process.execPath,
      ["--input-type=module", "-e", program],
      {
        cwd: fileURLToPath(new URL("..", import.meta.url)),
        stdio: ["ignore", full, "pipe"],
        encoding: "utf8",
        timeout: 60_000,
      },
    );
    closeSync(full);
    expect({ status: done.status, stderr: done.stderr }).toEqual({
      status: 7,
      stderr: "5",
    });
  },
);

const disk = createSmallDisk(1);

test.skipIf(disk === undefined).each([true, false])(
  "dropped lines are reported once there is space again (sync: %s)",
  async (sync) => {
    const { path, fill, free, remove } = disk ?? expect.fail();
    const name = join(path, `log-${sync}`);
    const fd = openSync(name, "a");
    try {
      const output = openLogOutput(fd, { sync, now: () => "now" });
      const before = droppedLogLines();
      const line = `${JSON.stringify({ msg: "x".repeat(3000) })}\n`;
      const written = () =>
        readFileSync(name, "utf8")
          .split("\n")
          .filter((each) => each !== "");
      output.write(line);
      await expect.poll(() => written().length).toBe(1);
      fill();
      // The remainder of the page fits the first third.
      for (let count = 0; count < 3; count += 1) {
        output.write(line);
      }
      await expect.poll(() => droppedLogLines() - before).toBe(3);
      free();
      output.write(line);
      await expect.poll(() => written().length).toBe(4);
      const [first, cut, report, last, ...more] = written();
      expect([first, last].map((each) => `${each}\n`)).toEqual([line, line]);
      expect(line.startsWith(cut ?? "none")).toBe(true);
      expect(JSON.parse(report ?? "")).toEqual({
        level: 40,
        time: "now",
        msg: "3 log lines were dropped because the log could not be written",
      });
      expect(more).toEqual([]);
    } finally {
      closeSync(fd);
      if (!sync) {
        remove();
      }
    }
  },
);
