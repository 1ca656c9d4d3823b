import { fork, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { programEnv } from "../servers/program-env.ts";
import { projectRoot } from "../../supervisor/home/home.ts";

export interface CommandResult {
  readonly code: number | null;
  readonly out: string;
  readonly error: string;
}

export interface Command {
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** What is piped into it. */
  readonly input: string;
}

interface RunningCommand {
  readonly child: ChildProcess;
  readonly out: () => string;
  readonly ended: Promise<CommandResult>;
}

function environmentOf(
  env: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return { ...programEnv(), NO_COLOR: "1", ...env };
}

/**
 * Starts the CLI in a separate process, as an operator does. For what a process of its own shows: signals, output before its
 * end, programs that it starts. Otherwise `runHearth` costs a tenth.
 */
export function startHearth(
  words: readonly string[],
  env: Readonly<Record<string, string>>,
): RunningCommand {
  const child = spawn(
    process.execPath,
    [join(projectRoot, "supervisor", "cli", "main.ts"), ...words],
    {
      env: environmentOf(env),
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  let out = "";
  let error = "";
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (error += chunk.toString()));
  const ended = new Promise<CommandResult>((resolve) =>
    child.once("close", (code) => resolve({ code, out, error })),
  );
  return { child, out: () => out, ended };
}

/** The process in which `runHearth` runs its commands: one for each process of tests. */
let program: ChildProcess | undefined;
/** Of the last command. */
let ended: Promise<unknown> = Promise.resolve();

/** Runs a command of the CLI in a process that stays for the next one: starting another takes longer than the command. */
export function runHearth(
  words: readonly string[],
  env: Readonly<Record<string, string>>,
  input: string = "",
): Promise<CommandResult> {
  const result = ended.then(() =>
    runInProgram({ words, env: environmentOf(env), input }),
  );
  ended = result.catch(() => undefined);
  return result;
}

async function runInProgram(command: Command): Promise<CommandResult> {
  program ??= startProgram();
  const stopped = new AbortController();
  try {
    program.send(command);
    return await Promise.race([
      once(program, "message", { signal: stopped.signal }).then(
        ([result]: CommandResult[]) => result as CommandResult,
      ),
      once(program, "exit", { signal: stopped.signal }).then(() => {
        program = undefined;
        throw new Error(
          `hearth ${command.words.join(" ")} ended the process that ran it`,
        );
      }),
    ]);
  } finally {
    stopped.abort();
  }
}

function startProgram(): ChildProcess {
  const started = fork(join(import.meta.dirname, "command-program.ts"), {
    execPath: process.execPath,
    execArgv: [],
    env: programEnv(),
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  // It ends when this process does, and does not keep it.
  started.unref();
  started.channel?.unref();
  return started;
}
