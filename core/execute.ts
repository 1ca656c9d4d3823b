import { createRequire } from "node:module";
import { existsSync } from "node:fs";
import { basename } from "node:path";
import type { Duplex, Readable, Writable } from "node:stream";
import type { Options, SyncOptions } from "execa";
import type { Environment } from "./environment.ts";
import { Failure } from "./failure.ts";

/**
 * The one place that starts programs. Secrets belong in `env` or `input`: arguments are visible to every user of the machine.
 * No message made here contains an argument or a variable.
 */
export interface ExecuteOptions {
  readonly cwd?: string;
  /** The complete environment of the program; this process's own by default. */
  readonly env?: Environment;
  /** Written to standard input, which is then closed. Without it there is no input. */
  readonly input?: string | Readable;
  /** After this time the program gets SIGTERM, and SIGKILL if it is still running `KILL_AFTER_MS` later. */
  readonly timeoutMs?: number;
  readonly uid?: number;
  readonly gid?: number;
  readonly stdin?: "inherit";
  readonly stdout?: OutputTarget;
  readonly stderr?: OutputTarget;
}

/** `capture` (default): into the result. A number is an open file descriptor. */
export type OutputTarget = "capture" | "ignore" | "inherit" | number;

export interface AsyncExecuteOptions extends Omit<
  ExecuteOptions,
  "stdout" | "stderr"
> {
  /** Terminates the program when aborted; `execute` then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  readonly stdout?: OutputTarget | OutputConsumer;
  readonly stderr?: OutputTarget | OutputConsumer;
}

/** Receives each piece of text when it arrives, in place of the result. */
export type OutputConsumer = (text: string) => void;

export interface StartOptions extends Omit<
  AsyncExecuteOptions,
  "stdin" | "stdout"
> {
  /** `pipe`: `stdin` of the process stays open until it is ended. */
  readonly stdin?: "inherit" | "pipe";
  /** `pipe`: raw bytes from `stdout` of the process. */
  readonly stdout?: OutputTarget | OutputConsumer | "pipe";
  /** Inherited as descriptors 3, 4, …: open ones of this process, or a new `pipe` to it, in `pipes` of the process. */
  readonly descriptors?: readonly (number | "pipe")[];
  /** In its own process group: Ctrl-C in this terminal does not reach it. */
  readonly detached?: boolean;
}

/** How a program ended. */
export interface Execution {
  /** Exit code 0. */
  readonly ok: boolean;
  /** Undefined if a signal ended the program or it never started. */
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
  /** As captured, with its final newline; empty if it went elsewhere. */
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
  /** Code of the system error that prevented the start: "ENOENT" if the program is not installed. */
  readonly startError: string | undefined;
  /** Why the program failed, as a clause without a full stop: the last line it wrote to stderr, if any. Empty if `ok`. */
  readonly reason: string;
}

/** A program that is still running, or could not be started. */
export interface StartedProcess {
  /** Undefined if the program could not be started; `ended` has the reason. */
  readonly pid: number | undefined;
  /** Resolves when the program and its output have ended. Never rejects. */
  readonly ended: Promise<Execution>;
  /** Null unless piped. */
  readonly stdin: Writable | null;
  readonly stdout: Readable | null;
  /** This end of each `pipe` among the descriptors, in their order. */
  readonly pipes: readonly Duplex[];
  /** Lets this process exit while the program continues to run. */
  readonly unref: () => void;
  /** SIGTERM, then SIGKILL after `KILL_AFTER_MS`; resolves when the program has ended. */
  readonly stop: () => Promise<Execution>;
}

const KILL_AFTER_MS = 5_000;

/** Options of a program that reads from and writes to this terminal. */
export const IN_TERMINAL = {
  stdin: "inherit",
  stdout: "inherit",
  stderr: "inherit",
} as const;

/** Runs a program to its end. Rejects only if `signal` is aborted. */
export async function execute(
  file: string,
  args: readonly string[] = [],
  options: AsyncExecuteOptions = {},
): Promise<Execution> {
  options.signal?.throwIfAborted();
  const execution = await startProcess(file, args, options).ended;
  options.signal?.throwIfAborted();
  return execution;
}

/** The same, and throws a Failure with the reason unless the program succeeds. */
export async function executeOrThrow(
  file: string,
  args: readonly string[],
  options: AsyncExecuteOptions = {},
): Promise<Execution> {
  const execution = await execute(file, args, options);
  if (!execution.ok) {
    throw new Failure(`${basename(file)} failed: ${execution.reason}.`);
  }
  return execution;
}

/** For short programs at moments when nothing else may run: blocks until the program has ended. Never throws. */
export function executeSync(
  file: string,
  args: readonly string[] = [],
  options: Omit<ExecuteOptions, "input"> & { readonly input?: string } = {},
): Execution {
  const result = loadExeca().execaSync(file, args, {
    ...commonOptions(options),
    stdout: streamOf(options.stdout),
    stderr: streamOf(options.stderr),
    reject: false,
    stripFinalNewline: false,
  } satisfies SyncOptions);
  return executionOf(file, options, result);
}

/** By code of a system error: what to do when a machine or process cannot open a file or start a program, whichever it is. */
export const EXHAUSTED: Readonly<Record<string, string>> = {
  EMFILE: "raise the limit of open files (`ulimit -n 65536`)",
  ENFILE: "close files of other programs",
  EAGAIN: "raise the limit of processes (`ulimit -u`), or end some",
  ENOMEM: "free some memory",
};

/** The same for a program whose failure is an answer ("no such user"): throws a Failure if nothing can be started now. */
export function askSync(
  ...[file, args, options]: Parameters<typeof executeSync>
): Execution {
  const execution = executeSync(file, args, options);
  const advice = EXHAUSTED[execution.startError ?? ""];
  if (advice !== undefined) {
    throw new Failure(
      `${execution.reason}: ${advice}, then run the command again.`,
    );
  }
  return execution;
}

/** Starts a program that runs for longer, or whose output is streamed. */
export function startProcess(
  file: string,
  args: readonly string[] = [],
  options: StartOptions = {},
): StartedProcess {
  const { stdin, ...common } = commonOptions(options);
  const descriptors = (options.descriptors ?? []) as readonly (9 | "pipe")[];
  const child = loadExeca().execa(file, args, {
    ...common,
    stdio: [
      stdin,
      streamOf(options.stdout),
      streamOf(options.stderr),
      ...descriptors,
    ],
    buffer: {
      stdout: isBuffered(options.stdout),
      stderr: isBuffered(options.stderr),
      ...Object.fromEntries(descriptors.map((_, at) => [`fd${at + 3}`, false])),
    },
    detached: options.detached ?? false,
    // A separate handler for each signal would change how this process ends.
    cleanup: false,
    forceKillAfterDelay: KILL_AFTER_MS,
    reject: false,
    stripFinalNewline: false,
    ...(options.signal === undefined ? {} : { cancelSignal: options.signal }),
  } satisfies Options);
  consume(child.stdout, options.stdout);
  consume(child.stderr, options.stderr);
  const ended = child.then((result) => executionOf(file, options, result));
  return {
    pid: child.pid,
    ended,
    stdin: options.stdin === "pipe" ? child.stdin : null,
    stdout: options.stdout === "pipe" ? child.stdout : null,
    pipes: descriptors.flatMap((descriptor, at) =>
      descriptor === "pipe" ? [child.stdio[at + 3] as unknown as Duplex] : [],
    ),
    unref: () => child.nodeChildProcess.unref(),
    stop: () => {
      child.kill("SIGTERM");
      return ended;
    },
  };
}

/** At the first program that is started: most processes never start one, and the library takes 4 MB and 50 ms. */
let loaded: typeof import("execa") | undefined;
function loadExeca(): typeof import("execa") {
  loaded ??= createRequire(import.meta.url)("execa") as typeof import("execa");
  return loaded;
}

function commonOptions<Input>(
  options: Omit<StartOptions, "input"> & { readonly input?: Input },
) {
  const { cwd, env, input, timeoutMs, uid, gid } = options;
  return {
    ...(cwd === undefined ? {} : { cwd }),
    env: Object.fromEntries(
      Object.entries(env ?? process.env).filter(
        (entry): entry is [string, string] => entry[1] !== undefined,
      ),
    ),
    extendEnv: false,
    ...(input === undefined
      ? { stdin: options.stdin ?? ("ignore" as const) }
      : { stdin: "pipe" as const, input }),
    ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
    maxBuffer: Number.MAX_SAFE_INTEGER,
  };
}

function streamOf(target: StartOptions["stdout"]) {
  switch (target) {
    case "ignore":
    case "inherit":
      return target;
    default:
      // Any descriptor is accepted; execa's types list those up to 9.
      return typeof target === "number" ? (target as 9) : "pipe";
  }
}

function isBuffered(target: StartOptions["stdout"]): boolean {
  return target === undefined || target === "capture";
}

function consume(
  stream: Readable | null,
  consumer: StartOptions["stdout"],
): void {
  if (typeof consumer === "function") {
    stream?.setEncoding("utf8").on("data", consumer);
  }
}

interface ExecaResult {
  readonly exitCode?: number;
  readonly signal?: string;
  readonly stdout?: unknown;
  readonly stderr?: unknown;
  readonly timedOut: boolean;
  readonly code?: string;
  readonly failed: boolean;
}

function executionOf(
  file: string,
  { cwd, timeoutMs }: Pick<ExecuteOptions, "cwd" | "timeoutMs">,
  result: ExecaResult,
): Execution {
  const { exitCode, signal, timedOut } = result;
  const startError =
    exitCode === undefined && signal === undefined && !timedOut
      ? (result.code ?? "unknown error")
      : undefined;
  const stderr = typeof result.stderr === "string" ? result.stderr : "";
  const ok = exitCode === 0;
  const reason = (): string => {
    const name = basename(file);
    if (timedOut) {
      return `timed out after ${(timeoutMs ?? 0) / 1000} s`;
    }
    if (startError === undefined) {
      return (
        lastLineOf(stderr) ||
        (signal === undefined ? `exit code ${exitCode}` : `killed by ${signal}`)
      );
    }
    if (cwd !== undefined && !existsSync(cwd)) {
      return `directory ${cwd} not found`;
    }
    return startError === "ENOENT"
      ? `${name} is not installed on this machine`
      : `${name} could not be started (${startError})`;
  };
  return {
    ok,
    exitCode,
    signal,
    stdout: typeof result.stdout === "string" ? result.stdout : "",
    stderr,
    timedOut,
    startError,
    reason: ok ? "" : reason(),
  };
}

/** The last line that says something, without its full stop. */
export function lastLineOf(text: string): string {
  return (text.trim().split("\n").at(-1) ?? "").trim().replace(/\.$/, "");
}
