// Runs commands of the CLI one after another in one process, where modules are loaded once. hearth-command.ts starts it, sends each
// command as a message and gets its result as one. It ends with its parent.
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { runWords } from "../../cli/main.ts";
import type { Command, CommandResult } from "./hearth-command.ts";

/** Between looks at what a command left running. */
const LOOK_MS = 2;

const umask = process.umask();

/** As a process of its own would: with only these variables, this input, and an end when nothing keeps the process alive. */
async function run({ words, env, input }: Command): Promise<CommandResult> {
  const running = countRunning();
  process.env = { ...env };
  Object.defineProperty(process, "stdin", {
    value: Readable.from(input === "" ? [] : [Buffer.from(input)]),
    configurable: true,
  });
  const out = capture(process.stdout);
  const error = capture(process.stderr);
  const code = await runWords(words);
  while (countRunning() > running) {
    await sleep(LOOK_MS, undefined, { ref: false });
  }
  process.umask(umask);
  return { code, out: out(), error: error() };
}

/** What keeps the process alive: timers, requests, open connections that wait for something. */
function countRunning(): number {
  return process.getActiveResourcesInfo().length;
}

/** Collects from now on what is written. */
function capture(stream: NodeJS.WriteStream): () => string {
  let text = "";
  stream.write = (
    chunk: string | Uint8Array,
    encoding?: unknown,
    written: unknown = encoding,
  ): boolean => {
    text += typeof chunk === "string" ? chunk : Buffer.from(chunk).toString();
    if (typeof written === "function") {
      process.nextTick(written as () => void);
    }
    return true;
  };
  return () => text;
}

process.on("message", (command) => {
  void run(command as Command).then((result) => process.send?.(result));
});
process.on("disconnect", () => process.exit(0));
