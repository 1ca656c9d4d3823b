import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isAlive, processesIn, startTimeOf } from "./identity.ts";
import { killGroup } from "./stop.ts";

test("a process is identified by id and start time until it has ended", async () => {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1e6)"], {
    detached: true,
  });
  await once(child, "spawn");
  const pid = child.pid ?? 0;
  const startTime = startTimeOf(pid) ?? "";
  expect(startTime).not.toBe("");
  expect(isAlive({ pid, startTime })).toBe(true);
  expect(isAlive({ pid, startTime: `${startTime}0` })).toBe(false);
  killGroup({ pid, startTime: `${startTime}0` });
  expect(isAlive({ pid, startTime })).toBe(true);
  killGroup({ pid, startTime });
  await once(child, "exit");
  expect(isAlive({ pid, startTime })).toBe(false);
});

test("a process that ended but was not reaped counts as ended", async () => {
  // The shell becomes a program that never reaps the child that it started.
  const parent = spawn(
    "/bin/sh",
    ["-c", "sleep 0.1 & echo $!; exec sleep 120"],
    {
      stdio: ["ignore", "pipe", "ignore"],
    },
  );
  const [line] = (await once(parent.stdout, "data")) as [Buffer];
  const pid = Number(line.toString().trim());
  await expect.poll(() => startTimeOf(pid)).toBeUndefined();
  expect(() => process.kill(pid, 0)).not.toThrow();
  parent.kill("SIGKILL");
  await once(parent, "exit");
});

test("without free file descriptors, a running process does not count as ended, nor as absent from its directory", async () => {
  const child = spawn("sleep", ["60"], { cwd: tmpdir() });
  await once(child, "spawn");
  const pid = child.pid ?? 0;
  const identity = JSON.stringify({ pid, startTime: startTimeOf(pid) });
  const program = `
    import { openSync } from "node:fs";
    import { isAlive, processesIn, startTimeOf } from ${JSON.stringify(join(import.meta.dirname, "identity.ts"))};
    const identity = ${identity};
    const attempt = (ask) => {
      try {
        return ask() ?? null;
      } catch (error) {
        return error.message;
      }
    };
    const before = isAlive(identity);
    try {
      for (;;) openSync("/dev/null");
    } catch {}
    const answers = [before, isAlive(identity), isAlive({ pid: 2 ** 30, startTime: "1" })];
    answers.push(attempt(() => startTimeOf(identity.pid)));
    answers.push(attempt(() => processesIn(${JSON.stringify(tmpdir())}, "sleep")));
    process.stdout.write(JSON.stringify(answers));`;
  const args = ["--input-type=module", "--eval", program];
  const out = execFileSync(
    "/bin/sh",
    ["-c", 'ulimit -n 128; exec "$0" "$@"', process.execPath, ...args],
    { encoding: "utf8" },
  );
  child.kill("SIGKILL");
  await once(child, "exit");
  const failure = expect.stringMatching(/EMFILE/);
  expect(JSON.parse(out)).toEqual([true, true, false, failure, failure]);
});

test("programs are found by name and working directory", async () => {
  const child = spawn("sleep", ["120"], { cwd: tmpdir() });
  await once(child, "spawn");
  await expect
    .poll(() => processesIn(realpathSync(tmpdir()), "sleep"))
    .toContain(child.pid);
  expect(processesIn("/", "sleep")).not.toContain(child.pid);
  child.kill("SIGKILL");
  await once(child, "exit");
});
