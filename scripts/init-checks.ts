import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { HearthConfig, HostName } from "../infra/config.ts";
import { dockerAt } from "../infra/engine.ts";

const run = promisify(execFile);
const oldestDocker = 20;
const gibibytesNeeded = 4;

/**
 * Looks at a host as `up` will find it: is Docker reached, is it new enough, is there room, are the addresses its own. Each
 * finding is a sentence that says what to do.
 */
export async function checkHost(
  name: HostName,
  config: HearthConfig,
): Promise<readonly string[]> {
  const { docker: endpoint, sshOpts } = config.hosts[name];
  const engine = { endpoint, sshOpts };
  const host = `host ${name.toUpperCase()}`;
  let version: string;
  try {
    version = (
      await dockerAt(engine, ["version", "--format", "{{.Server.Version}}"])
    ).trim();
  } catch (error) {
    return [
      `${host}: Docker at ${endpoint} does not answer (${reasonOf(error)}): try \`docker -H ${endpoint} version\`, then run init again.`,
    ];
  }
  const found: string[] = [];
  if (Number.parseInt(version, 10) < oldestDocker)
    found.push(
      `${host}: Docker is ${version}, ${oldestDocker} or newer is needed: upgrade it.`,
    );
  const root = (
    await dockerAt(engine, ["info", "--format", "{{.DockerRootDir}}"])
  ).trim();
  const free = await freeGibibytes(endpoint, sshOpts, root);
  if (free !== null && free < gibibytesNeeded)
    found.push(
      `${host}: ${free} GiB are free at ${root}, ${gibibytesNeeded} are needed to begin: free some.`,
    );
  return found;
}

/** Over ssh the host's own df tells; of an engine reached otherwise only this machine's disk could be seen. */
async function freeGibibytes(
  endpoint: string,
  sshOpts: readonly string[],
  directory: string,
): Promise<number | null> {
  const ssh = /^ssh:\/\/([^/:]+)(?::(\d+))?$/.exec(endpoint);
  if (ssh === null && !endpoint.startsWith("unix://")) return null;
  const df = ["df", "--output=avail", "-BG", directory];
  try {
    const { stdout } =
      ssh === null
        ? await run("df", df.slice(1))
        : await run("ssh", [
            ...sshOpts,
            ...(ssh[2] === undefined ? [] : ["-p", ssh[2]]),
            ssh[1] ?? "",
            df.join(" "),
          ]);
    return Number.parseInt(stdout.split("\n")[1] ?? "", 10);
  } catch {
    return null;
  }
}

function reasonOf(error: unknown): string {
  const { stderr, message } = error as Error & { readonly stderr?: string };
  return (stderr ?? message).trim().split("\n").at(-1) ?? message;
}
