import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** How a host's engine is reached. */
export interface EngineAddress {
  /** ssh://USER@HOST[:PORT], unix://… or tcp://… */
  readonly endpoint: string;
  readonly sshOpts: readonly string[];
}

/**
 * Runs one docker command for an engine and gives its standard output. Over ssh it is the host's own docker that runs. A secret
 * goes in as `input`: arguments are seen by everybody on both machines.
 */
export async function dockerAt(
  engine: EngineAddress,
  args: readonly string[],
  input = "",
  signal?: AbortSignal,
): Promise<string> {
  return (await runDocker(engine, args, input, signal)).stdout;
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
  );
  return `${stdout}${stderr}`;
}

async function runDocker(
  engine: EngineAddress,
  args: readonly string[],
  input: string,
  signal?: AbortSignal,
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const [file, ...rest] = dockerCommand(engine, args);
  const running = run(file, rest, {
    maxBuffer: 64 * 1024 * 1024,
    ...(signal && { signal }),
  });
  running.child.stdin?.on("error", () => undefined).end(input);
  return running;
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

/** How this machine's ssh reaches the host, without what it is to do there; null for an engine that is reached without ssh. */
export function sshCommand({
  endpoint,
  sshOpts,
}: EngineAddress): readonly [string, ...string[]] | null {
  const ssh = /^ssh:\/\/([^/:]+)(?::(\d+))?$/.exec(endpoint);
  return ssh === null
    ? null
    : [
        "ssh",
        ...sshOpts,
        ...(ssh[2] === undefined ? [] : ["-p", ssh[2]]),
        ssh[1] ?? "",
      ];
}

function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
