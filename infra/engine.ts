import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** How a host's engine is reached. */
export interface EngineAddress {
  /** ssh://USER@HOST[:PORT], unix://… or tcp://… */
  readonly endpoint: string;
  readonly sshOpts: readonly string[];
}

/** Runs one docker command for an engine and gives its standard output. Over ssh it is the host's own docker that runs. */
export async function dockerAt(
  engine: EngineAddress,
  args: readonly string[],
): Promise<string> {
  return (await runDocker(engine, args)).stdout;
}

/** The last lines that a container wrote, to either output; a program's reason not to start is on the second. */
export async function containerLog(
  engine: EngineAddress,
  container: string,
  lines: number,
): Promise<string> {
  const { stdout, stderr } = await runDocker(engine, [
    "logs",
    "--tail",
    String(lines),
    container,
  ]);
  return `${stdout}${stderr}`;
}

async function runDocker(
  { endpoint, sshOpts }: EngineAddress,
  args: readonly string[],
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const ssh = /^ssh:\/\/([^/:]+)(?::(\d+))?$/.exec(endpoint);
  return ssh === null
    ? run("docker", ["-H", endpoint, ...args])
    : run("ssh", [
        ...sshOpts,
        ...(ssh[2] === undefined ? [] : ["-p", ssh[2]]),
        ssh[1] ?? "",
        ["docker", ...args].map(shellWord).join(" "),
      ]);
}

function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
