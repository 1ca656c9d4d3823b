import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startProcess } from "../core/execute.ts";

const HANDOVER = JSON.stringify(new URL("./handover.ts", import.meta.url).href);

/** Serves "first", starts its successor, and ends once that is ready. */
const PREDECESSOR = `
import { createServer } from "node:net";
import { startSuccessor } from ${HANDOVER};
const [file] = process.argv.slice(1);
const log = { info() {}, error: (_, message) => console.error(message) };
const server = createServer((socket) => socket.end("first"));
server.listen(0, "127.0.0.1", () => {
  console.log(server.address().port);
  process.once("SIGUSR2", () => {
    startSuccessor({ file, server, log, onReady: () => process.exit(0) });
  });
});`;

/** Serves "second" on the socket that was passed to it, once its predecessor has ended. */
const SUCCESSOR = `
import { createServer } from "node:net";
import { findPredecessor } from ${HANDOVER};
const { listenFd, takeOver } = findPredecessor(process.env);
await takeOver();
createServer((socket) => socket.end("second")).listen({ fd: listenFd });
setTimeout(() => process.exit(1), 20_000);`;

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-handover-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

test("a successor serves on the same socket once its predecessor has ended", async () => {
  const file = join(directory, "successor.json");
  const started = join(directory, "started");
  const plan = {
    file: process.execPath,
    args: script(SUCCESSOR),
    cwd: directory,
    env: {},
    log: join(directory, "log"),
    started,
  };
  writeFileSync(file, JSON.stringify(plan));
  const port = Promise.withResolvers<number>();
  const predecessor = startProcess(
    process.execPath,
    [...script(PREDECESSOR), file],
    { stdout: (line) => port.resolve(Number(line)) },
  );
  expect(await answer(await port.promise)).toBe("first");
  process.kill(predecessor.pid ?? 0, "SIGUSR2");
  expect(await predecessor.ended).toMatchObject({ ok: true, stderr: "" });
  try {
    expect(await answer(await port.promise)).toBe("second");
  } finally {
    process.kill(Number(readFileSync(started, "utf8")));
  }
});

function script(code: string): readonly string[] {
  return ["--input-type=module", "--eval", code];
}

function answer(port: number): Promise<string> {
  return text(connect(port, "127.0.0.1"));
}
