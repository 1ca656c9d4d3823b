import { userInfo } from "node:os";
import type { Readable } from "node:stream";
import { shellQuoted } from "../core/shell.ts";
import { execute, type Execution } from "../core/execute.ts";
import type { HearthConfig, HostName } from "./config/config-schema.ts";
import type { StackNames } from "./names.ts";

/** Address of a host's Docker engine. */
export interface EngineAddress {
  /** ssh://USER@HOST[:PORT], unix://… or tcp://… */
  readonly endpoint: string;
  readonly sshOpts: readonly string[];
}

/** A host's engine and the names of the stack's resources there. */
export interface StackEngine extends EngineAddress, StackNames {}

/** The engines of both hosts. */
export type StackEngines = Readonly<Record<HostName, StackEngine>>;

/** The engine of a configured host. `stack`: PROJECT/STACK. */
export function stackEngine(
  { hosts, prefix }: Pick<HearthConfig, "hosts" | "prefix">,
  host: HostName,
  stack: string,
): StackEngine {
  const { docker: endpoint, sshOpts } = hosts[host];
  return { endpoint, sshOpts, prefix, stack };
}

/** Longer than the slowest command, apart from those that wait for something else. */
export const COMMAND_WITHIN_MS = 180_000;

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

/** The lines of a program's output, without empty ones. */
export function outputLines(output: string): readonly string[] {
  return output.split("\n").filter((line) => line !== "");
}

/** The last lines of a container's stdout and stderr. */
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

/** Local program and arguments that run one docker command on an engine. */
export function dockerCommand(
  engine: EngineAddress,
  args: readonly string[],
): readonly [string, ...string[]] {
  const ssh = sshCommand(engine);
  return ssh === null
    ? ["docker", "-H", engine.endpoint, ...args]
    : [...ssh, ["docker", ...args].map(shellQuoted).join(" ")];
}

/**
 * The ssh command line up to the remote command; null for an engine that is reached without ssh. ssh uses the first of
 * conflicting options: `firm` ones take precedence over the operator's, which take precedence over the defaults.
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
        // Otherwise it waits at a password prompt, or for minutes at an unreachable address.
        "-o",
        "BatchMode=yes",
        "-o",
        "ConnectTimeout=10",
        ...(ssh.port === undefined ? [] : ["-p", ssh.port]),
        ssh.login,
      ];
}

/** Prefix of a command to be run on the host by the operator; empty without ssh. */
export function loginPrefix({ endpoint, sshOpts }: EngineAddress): string {
  const ssh = sshLogin(endpoint);
  if (ssh === null) {
    return "";
  }
  const words = [
    ...withoutSharing(sshOpts).map((word) =>
      /^[\w@%+=:,./~-]+$/.test(word) ? word : shellQuoted(word),
    ),
    ...(ssh.port === undefined ? [] : ["-p", ssh.port]),
    ssh.login,
  ];
  return `ssh ${words.join(" ")} `;
}

/** The user who runs commands on the host: this machine's, unless the endpoint names one. */
export function userOf({ endpoint }: EngineAddress): string {
  const login = sshLogin(endpoint)?.login;
  const [user] = login?.includes("@") === true ? login.split("@") : [];
  return user ?? userInfo().username;
}

/** A command to be typed that removes the host's key from the list of known ones, also where an option of ssh names its file. */
export function forgetHostKey({ endpoint, sshOpts }: EngineAddress): string {
  const { login = "", port = "22" } = sshLogin(endpoint) ?? {};
  const host = login.replace(/^.*@/, "");
  const [file] = sshOpts.flatMap(
    (word) => /UserKnownHostsFile[= ](\S+)/i.exec(word)?.[1] ?? [],
  );
  return [
    "ssh-keygen",
    ...(file === undefined ? [] : ["-f", file]),
    "-R",
    port === "22" ? host : shellQuoted(`[${host}]:${port}`),
  ].join(" ");
}

/** Prefix of a command that the operator runs as root on the host; sudo may prompt for a password. */
export function asRoot(engine: EngineAddress): string {
  const login = loginPrefix(engine);
  return userOf(engine) === "root"
    ? login
    : `${login.replace(/^ssh /, "ssh -t ")}sudo `;
}

/** A single command needs the operator's key, but not the shared connection and what ends it. */
function withoutSharing(sshOpts: readonly string[]): readonly string[] {
  const shares = (word = "") => /^(Control|ServerAlive)/.test(word);
  return sshOpts.filter(
    (word, at) => !shares(word) && !(word === "-o" && shares(sshOpts[at + 1])),
  );
}

/** A docker command for the operator to type: over ssh it uses the host's own docker, since this machine may have none. */
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
  const ssh =
    /^ssh:\/\/((?:[^/:@]+@)?)(?:\[([^\]]+)\]|([^/:@]+))(?::(\d+))?$/.exec(
      endpoint,
    );
  if (ssh === null) {
    return null;
  }
  const [, user = "", ipv6, host = "", port] = ssh;
  return { login: `${user}${ipv6 ?? host}`, port };
}
