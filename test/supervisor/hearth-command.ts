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

/** Starts the CLI in a separate process, as an operator does. */
export function startHearth(
  words: readonly string[],
  env: Readonly<Record<string, string>>,
): RunningCommand {
  const child = spawn(
    process.execPath,
    [join(projectRoot, "supervisor", "cli", "main.ts"), ...words],
    {
      env: { ...programEnv(), NO_COLOR: "1", ...env },
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
