import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { configLabel } from "./container.ts";

const run = promisify(execFile);

/** How a host's engine is reached. */
export interface EngineAddress {
  /** ssh://USER@HOST[:PORT], unix://… or tcp://… */
  readonly endpoint: string;
  readonly sshOpts: readonly string[];
}

/**
 * Stops and removes a container of this name that an interrupted `up` or a lost state left behind. One that does not carry our
 * label is somebody else's: that is an error, and it is left alone.
 */
export async function removeLeftover(
  engine: EngineAddress,
  name: string,
): Promise<void> {
  const found = await dockerAt(engine, [
    "ps",
    "--all",
    "--no-trunc",
    "--filter",
    `name=^/${name}$`,
    "--format",
    `{{.ID}} {{.Label "${configLabel}"}}`,
  ]);
  const [id, label] = found.trim().split(" ");
  if (id === undefined || id === "") return;
  if (label === undefined || label === "")
    throw new Error(
      `a container named ${name} that Hearth did not make is on ${engine.endpoint}: rename or remove it, then run up again.`,
    );
  await dockerAt(engine, ["stop", "--time", "60", id]);
  await dockerAt(engine, ["rm", "--force", id]);
}

/** Runs one docker command for an engine and gives its standard output. Over ssh it is the host's own docker that runs. */
export async function dockerAt(
  { endpoint, sshOpts }: EngineAddress,
  args: readonly string[],
): Promise<string> {
  const ssh = /^ssh:\/\/([^/:]+)(?::(\d+))?$/.exec(endpoint);
  const { stdout } =
    ssh === null
      ? await run("docker", ["-H", endpoint, ...args])
      : await run("ssh", [
          ...sshOpts,
          ...(ssh[2] === undefined ? [] : ["-p", ssh[2]]),
          ssh[1] ?? "",
          ["docker", ...args].map(shellWord).join(" "),
        ]);
  return stdout;
}

function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
