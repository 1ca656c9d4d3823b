import { spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { programEnv } from "../servers/program-env.ts";
import { projectRoot } from "../../supervisor/home/home.ts";

export interface CommandResult {
  readonly code: number | null;
  readonly out: string;
  readonly error: string;
}

export interface RunningCommand {
  readonly child: ChildProcess;
  readonly out: () => string;
  readonly ended: Promise<CommandResult>;
}

/** Starts the CLI in a separate process, as an operator does; `input` is what is piped into it. */
export function startHearth(
  words: readonly string[],
  env: Readonly<Record<string, string>>,
  input: string = "",
): RunningCommand {
  const child = spawn(
    process.execPath,
    [join(projectRoot, "supervisor", "cli", "main.ts"), ...words],
    {
      env: { ...programEnv(), NO_COLOR: "1", ...env },
      stdio: ["pipe", "pipe", "pipe"],
    },
  );
  // A command that does not read it may have ended.
  child.stdin.on("error", () => undefined).end(input);
  let out = "";
  let error = "";
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (error += chunk.toString()));
  const ended = new Promise<CommandResult>((resolve) =>
    child.once("close", (code) => resolve({ code, out, error })),
  );
  return { child, out: () => out, ended };
}
