import type { Readable } from "node:stream";
import { execute, type Execution } from "../core/execute.ts";
import type { StackNames } from "./names.ts";

/** How a host's engine is reached. */
export interface EngineAddress {
  /** ssh://USER@HOST[:PORT], unix://… or tcp://… */
  readonly endpoint: string;
  readonly sshOpts: readonly string[];
}

/** A host's engine, and what the stack calls its own there. */
export interface StackEngine extends EngineAddress, StackNames {}

/** Longer than the slowest of them: containers that get a minute to stop. */
const COMMAND_WITHIN_MS = 180_000;

/** A docker command that failed. */
export class DockerError extends Error {
  readonly execution: Execution;

  constructor(engine: EngineAddress, execution: Execution) {
    super(
      execution.timedOut
        ? `Docker at ${engine.endpoint}: ${execution.reason}: check that \`${typedDocker(engine, "ps")}\` works, then run the same command again.`
        : `Docker at ${engine.endpoint}: ${execution.reason}.`,
    );
    this.name = "DockerError";
    this.execution = execution;
  }
}

/**
 * Runs one docker command for an engine and returns its standard output. Over ssh, the host's own docker runs it. Secrets belong
 * in `input`: arguments are visible to every user of both machines. Throws a DockerError, also after `withinMs`.
 */
export async function dockerAt(
  engine: EngineAddress,
  args: readonly string[],
  input: string | Readable = "",
  withinMs = COMMAND_WITHIN_MS,
): Promise<string> {
  return (await runDocker(engine, args, input, withinMs)).stdout;
}

/** The last lines that a container wrote, to either output; a program's reason not to start is on the second. */
export async function containerLog(
  engine: EngineAddress,
  container: string,
  lines: number,
): Promise<string> {
  const { stdout, stderr } = await runDocker(
    engine,
    ["logs", "--tail", String(lines), container],
    "",
    COMMAND_WITHIN_MS,
  );
  return `${stdout}${stderr}`;
}

async function runDocker(
  engine: EngineAddress,
  args: readonly string[],
  input: string | Readable,
  withinMs: number,
): Promise<Execution> {
  const [file, ...rest] = dockerCommand(engine, args);
  const execution = await execute(file, rest, { input, timeoutMs: withinMs });
  if (!execution.ok) {
    throw new DockerError(engine, execution);
  }
  return execution;
}

/** The program of this machine, and its arguments, that runs one docker command for an engine. */
export function dockerCommand(
  engine: EngineAddress,
  args: readonly string[],
): readonly [string, ...string[]] {
  const ssh = sshCommand(engine);
  return ssh === null
    ? ["docker", "-H", engine.endpoint, ...args]
    : [...ssh, ["docker", ...args].map(shellWord).join(" ")];
}

/**
 * How this machine's ssh reaches the host, without what it is to do there; null for an engine that is reached without ssh. ssh
 * takes the first of two options that differ: `firm` ones count before the operator's own, which count before ours.
 */
export function sshCommand(
  { endpoint, sshOpts }: EngineAddress,
  firm: readonly string[] = [],
): readonly [string, ...string[]] | null {
  const ssh = sshLogin(endpoint);
  return ssh === null
    ? null
    : [
        "ssh",
        ...firm,
        ...sshOpts,
        // Asked for a password, it would wait on the terminal; an address where nobody is, for minutes.
        "-o",
        "BatchMode=yes",
        "-o",
        "ConnectTimeout=10",
        ...(ssh.port === undefined ? [] : ["-p", ssh.port]),
        ssh.login,
      ];
}

/** Before a command that a person is to run on the host; empty where ssh does not lead there. */
export function loginPrefix({ endpoint, sshOpts }: EngineAddress): string {
  const ssh = sshLogin(endpoint);
  if (ssh === null) {
    return "";
  }
  const words = [
    ...withoutSharing(sshOpts).map((word) =>
      /^[\w@%+=:,./~-]+$/.test(word) ? word : shellWord(word),
    ),
    ...(ssh.port === undefined ? [] : ["-p", ssh.port]),
    ssh.login,
  ];
  return `ssh ${words.join(" ")} `;
}

/** A person's single command needs the operator's key, not the connection that many requests share. */
function withoutSharing(sshOpts: readonly string[]): readonly string[] {
  return sshOpts.filter(
    (word, at) =>
      !word.startsWith("Control") &&
      !(word === "-o" && sshOpts[at + 1]?.startsWith("Control")),
  );
}

/** A docker command as a person types it: over ssh it is the host's own docker, as this machine need not have one. */
export function typedDocker(engine: EngineAddress, command: string): string {
  const login = loginPrefix(engine);
  if (login === "") {
    return `docker -H ${engine.endpoint} ${command}`;
  }
  const terminal = command.startsWith("exec -it ") ? "-t " : "";
  return `${login.replace(/^ssh /, `ssh ${terminal}`)}docker ${command}`;
}

function sshLogin(
  endpoint: string,
): { readonly login: string; readonly port: string | undefined } | null {
  const ssh = /^ssh:\/\/([^/:]+)(?::(\d+))?$/.exec(endpoint);
  return ssh === null ? null : { login: ssh[1] ?? "", port: ssh[2] };
}

function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
