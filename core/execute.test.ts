import {
  mkdtempSync,
  openSync,
  readFileSync,
  closeSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import {
  execute,
  executeOrThrow,
  executeSync,
  lastLineOf,
  startProcess,
} from "./execute.ts";

const NODE = process.execPath;
const node = (script: string) => ["-e", script] as const;
const SECRET = "s3cret-argument";

test("returns both outputs, as written, and the exit code", async () => {
  const execution = await execute(
    NODE,
    node("console.log('out'); console.error('err'); process.exitCode = 3"),
  );
  expect(execution).toEqual({
    ok: false,
    exitCode: 3,
    signal: undefined,
    stdout: "out\n",
    stderr: "err\n",
    timedOut: false,
    startError: undefined,
    reason: "err",
  });
});

test("a program that succeeds has no reason, whatever it wrote to stderr", async () => {
  const execution = await execute(NODE, node("console.error('warning')"));
  expect(execution).toMatchObject({ ok: true, exitCode: 0, reason: "" });
});

test("throws the last line of stderr, without arguments and variables", async () => {
  const failing = executeOrThrow(
    NODE,
    [
      ...node("console.error('first\\nlast line.\\n'); process.exit(1)"),
      SECRET,
    ],
    { env: { PATH: process.env["PATH"], TOKEN: SECRET } },
  );
  await expect(failing).rejects.toThrow(/^node failed: last line\.$/);
  await expect(failing).rejects.not.toThrow(SECRET);
});

test("throws the exit code of a program that wrote nothing", async () => {
  const failing = executeOrThrow("/bin/sh", ["-c", "exit 4", SECRET]);
  await expect(failing).rejects.toThrow(/^sh failed: exit code 4\.$/);
});

test("names the signal that ended a program", async () => {
  const execution = await execute("/bin/sh", ["-c", "kill -KILL $$"]);
  expect(execution).toMatchObject({
    ok: false,
    exitCode: undefined,
    signal: "SIGKILL",
    reason: "killed by SIGKILL",
  });
});

test("a program that is not installed, and a directory that does not exist", async () => {
  const missing = await execute("/no/such/program", [SECRET]);
  expect(missing).toMatchObject({
    ok: false,
    startError: "ENOENT",
    reason: "program is not installed on this machine",
  });
  expect(executeSync("/no/such/program").startError).toBe("ENOENT");
  const elsewhere = await execute(NODE, [], { cwd: "/no/such/directory" });
  expect(elsewhere.reason).toBe("directory /no/such/directory not found");
  expect(startProcess("/no/such/program").pid).toBeUndefined();
});

test("a program that cannot be started for lack of open files is not an answer", async () => {
  const script = `
    import { openSync } from "node:fs";
    import { askSync } from ${JSON.stringify(join(import.meta.dirname, "execute.ts"))};
    console.log(askSync("false").ok);
    try {
      for (;;) openSync("/dev/null");
    } catch {}
    try {
      askSync("false");
    } catch (error) {
      console.log(error.message);
    }`;
  const { stdout } = await execute("/bin/sh", [
    "-c",
    'ulimit -n 64 && exec "$0" --input-type=module -e "$1"',
    NODE,
    script,
  ]);
  expect(stdout).toBe(
    "false\nfalse could not be started (EMFILE): raise the limit of open files (`ulimit -n 65536`), then run the command again.\n",
  );
});

test("the environment contains only the given variables", async () => {
  const print = node("console.log(JSON.stringify(process.env))");
  const { stdout } = await execute(NODE, print, {
    env: { ONE: "1", NONE: undefined },
  });
  expect(JSON.parse(stdout)).not.toHaveProperty("PATH");
  expect(JSON.parse(stdout)).toMatchObject({ ONE: "1" });
  expect(executeSync(NODE, print, { env: { ONE: "1" } }).stdout).toBe(stdout);
  expect(JSON.parse((await execute(NODE, print)).stdout)).toHaveProperty(
    "PATH",
  );
});

test("writes text and streams to standard input", async () => {
  const input = "line\n".repeat(100_000);
  expect((await execute("cat", [], { input })).stdout).toBe(input);
  expect(executeSync("cat", [], { input }).stdout).toBe(input);
  const stream = Readable.from([input]);
  expect((await execute("cat", [], { input: stream })).stdout).toBe(input);
});

test("a program may end before it has read its input", async () => {
  const input = "line\n".repeat(1_000_000);
  expect((await execute("true", [], { input })).ok).toBe(true);
});

test("without input standard input is empty", async () => {
  expect((await execute("cat")).stdout).toBe("");
  expect(executeSync("cat").stdout).toBe("");
});

test("ends a program at its timeout", async () => {
  const execution = await execute("sleep", ["60"], { timeoutMs: 50 });
  expect(execution).toMatchObject({
    ok: false,
    timedOut: true,
    reason: "timed out after 0.05 s",
  });
});

test("rejects with the reason of an aborted signal once the program has ended", async () => {
  const stop = new AbortController();
  const failing = execute("sleep", ["60"], { signal: stop.signal });
  stop.abort(new Error("stopped by the test"));
  await expect(failing).rejects.toThrow("stopped by the test");
  await expect(
    execute("sleep", ["60"], { signal: stop.signal }),
  ).rejects.toThrow("stopped by the test");
});

test("passes output to a consumer when it arrives, in whole characters", async () => {
  const pieces: string[] = [];
  const script = node(`
    const bytes = Buffer.from("ä");
    process.stdout.write(bytes.subarray(0, 1));
    setTimeout(() => process.stdout.write(bytes.subarray(1)), 50);`);
  const execution = await execute(NODE, script, {
    stdout: (piece) => pieces.push(piece),
  });
  expect(pieces.join("")).toBe("ä");
  expect(execution.stdout).toBe("");
});

function logPath(): string {
  const directory = mkdtempSync(join(tmpdir(), "hearth-test-execute-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return join(directory, "log");
}

test("writes to a file descriptor", async () => {
  const path = logPath();
  const log = openSync(path, "a");
  await execute(NODE, node("console.log(1); console.error(2)"), {
    stdout: log,
    stderr: log,
  });
  closeSync(log);
  expect(readFileSync(path, "utf8")).toBe("1\n2\n");
});

test("streams the raw output of a process into another", async () => {
  const source = startProcess("printf", ["one\\ntwo\\n"], { stdout: "pipe" });
  const { stdout: input } = source;
  if (input === null) {
    throw new Error("not piped");
  }
  expect((await execute("cat", [], { input })).stdout).toBe("one\ntwo\n");
  expect((await source.ended).ok).toBe(true);
});

test("keeps standard input open until it is ended", async () => {
  const { stdin, stdout, ended } = startProcess("cat", [], {
    stdin: "pipe",
    stdout: "pipe",
  });
  stdin?.write("first ");
  stdin?.end("last");
  expect(stdout === null ? "" : await text(stdout)).toBe("first last");
  expect((await ended).ok).toBe(true);
});

test("stops a process", async () => {
  const { stop } = startProcess("sleep", ["60"], { detached: true });
  expect(await stop()).toMatchObject({ ok: false, signal: "SIGTERM" });
});

test("the last line is found without its full stop", () => {
  expect(lastLineOf("a\nb. \n\n")).toBe("b");
  expect(lastLineOf("")).toBe("");
});

test("a short program that blocks writes to a file descriptor, too", () => {
  const path = logPath();
  const log = openSync(path, "a");
  const script = node("console.log(1); console.error(2)");
  const execution = executeSync(NODE, script, {
    stdout: log,
    stderr: "ignore",
  });
  closeSync(log);
  expect(execution).toMatchObject({ ok: true, stdout: "", stderr: "" });
  expect(readFileSync(path, "utf8")).toBe("1\n");
});
