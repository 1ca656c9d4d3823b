import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** A program of the benchmark in a separate process that answers one question at a time. */
export interface Program {
  readonly pid: number;
  /** Sends one question and waits for its answer; throws when the program ends or fails. */
  ask<Answer>(question: object): Promise<Answer>;
  running(): boolean;
  /** Its latest output. */
  output(): string;
  stop(): Promise<void>;
}

interface ProgramOptions {
  readonly name: string;
  readonly args?: readonly string[];
  readonly nodeArgs?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Time to end after SIGTERM, before it is killed. */
  readonly stopWithinMs?: number;
}

const MAX_OUTPUT_CHARACTERS = 4_000;
const STOP_WITHIN_MS = 10_000;

/** Starts a file with this Node. The program ends with its parent. */
export function startProgram(file: string, options: ProgramOptions): Program {
  const { name, stopWithinMs = STOP_WITHIN_MS } = options;
  const child = fork(file, [...(options.args ?? [])], {
    execArgv: [...(options.nodeArgs ?? [])],
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    env: { PATH: process.env["PATH"] ?? "", ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    // In a separate process group, so that on Ctrl-C only the benchmark receives the signal and stops the programs in order.
    detached: true,
    serialization: "advanced",
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-MAX_OUTPUT_CHARACTERS);
    });
  }

  function ask<Answer>(question: object): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const onMessage = (message: unknown) => {
        forget();
        const { failed } = message as { failed?: string };
        if (failed === undefined) {
          resolve(message as Answer);
        } else {
          reject(new Error(`the ${name} failed: ${failed}`));
        }
      };
      const onExit = () => {
        forget();
        reject(new Error(`the ${name} ended unexpectedly. ${output.trim()}`));
      };
      const forget = () => {
        child.off("message", onMessage);
        child.off("exit", onExit);
      };
      if (hasEnded(child)) {
        return onExit();
      }
      child.on("message", onMessage);
      child.on("exit", onExit);
      child.send(question, (error) => error !== null && onExit());
    });
  }

  return {
    pid: child.pid ?? 0,
    ask,
    running: () => !hasEnded(child),
    output: () => output,
    async stop() {
      if (hasEnded(child)) {
        return;
      }
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      const killTimer = setTimeout(() => child.kill("SIGKILL"), stopWithinMs);
      await ended;
      clearTimeout(killTimer);
    },
  };
}

/** The path of a program of this folder. */
export function programFile(name: string): string {
  return fileURLToPath(new URL(`./${name}`, import.meta.url));
}

/** Answers the questions of the parent in a program started by {@link startProgram}; ends with the parent. */
export function answerParent(
  answer: (question: never) => object | Promise<object>,
): void {
  process.on("message", (question: object) => {
    if ("probe" in question) {
      return;
    }
    void (async () => answer(question as never))()
      .catch((error: unknown) => ({ failed: (error as Error).message }))
      .then((result) => process.send?.(result));
  });
  // The probe has unreferenced the channel.
  process.channel?.ref();
  process.on("disconnect", () => process.exit(0));
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}
