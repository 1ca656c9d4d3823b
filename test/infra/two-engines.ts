import { execFile, execFileSync } from "node:child_process";
import { promisify } from "node:util";
import { inProject } from "../../infra/project-files.ts";

const run = promisify(execFile);

export type HostOf<T> = Readonly<Record<"a" | "b", T>>;

/** Addresses of the two test hosts (scripts/hosts.sh). */
export const addresses = { a: "10.77.0.1", b: "10.77.0.2" } as const;

/** Two real engines with the stand-in images, and nothing of ours on them. */
export interface TwoEngines {
  /** What `docker -H` takes. */
  readonly endpoints: HostOf<string>;
  /** The engine's own socket. */
  readonly sockets: HostOf<string>;
  /** Host B as an operator reaches it. */
  readonly sshToB: { readonly endpoint: string; readonly sshOpts: string[] };
  /** One docker command on a host; its standard output. */
  docker(host: "a" | "b", ...args: string[]): Promise<string>;
  /** Everything of ours on both hosts, whatever state it is in. */
  wipe(): Promise<void>;
  /** Stops both engines, unless HEARTH_KEEP_HOSTS=yes. */
  stop(): Promise<void>;
}

export async function startTwoEngines(): Promise<TwoEngines> {
  await runScript("scripts/hosts.sh", "up");
  const variables = Object.fromEntries(
    [
      ...(await runScript("scripts/hosts.sh", "env")).matchAll(/(\w+)=(.+)/g),
    ].map(([, name = "", value = ""]) => [name, value]),
  );
  const variable = (name: string) => variables[name] ?? "";
  const endpoints = {
    a: variable("HEARTH_HOST_A"),
    b: variable("HEARTH_HOST_B"),
  };
  const docker: TwoEngines["docker"] = async (host, ...args) =>
    (
      await run("docker", ["-H", endpoints[host], ...args], {
        env: { ...process.env, DOCKER_BUILDKIT: "0" },
        maxBuffer: 1e8,
      })
    ).stdout;
  const wipe = async () => {
    for (const host of ["a", "b"] as const) await wipeHost(host, docker);
  };
  // A run that was killed leaves its containers behind.
  await wipe();
  await runScript("test/infra/stand-ins/build.sh");
  return {
    endpoints,
    sockets: {
      a: variable("HEARTH_SOCKET_A"),
      b: variable("HEARTH_SOCKET_B"),
    },
    sshToB: {
      endpoint: variable("HEARTH_HOST_B_SSH"),
      sshOpts: [
        "-i",
        variable("HEARTH_SSH_KEY"),
        "-o",
        `UserKnownHostsFile=${variable("HEARTH_SSH_KNOWN_HOSTS")}`,
      ],
    },
    docker,
    wipe,
    stop: async () => {
      if (process.env["HEARTH_KEEP_HOSTS"] !== "yes")
        await runScript("scripts/hosts.sh", "down");
    },
  };
}

/** Runs a script of the project; its standard output. */
export async function runScript(
  script: string,
  ...args: string[]
): Promise<string> {
  return (await run(inProject(script), args, { maxBuffer: 1e8 })).stdout;
}

async function wipeHost(
  host: "a" | "b",
  docker: TwoEngines["docker"],
): Promise<void> {
  const words = (text: string) =>
    text.split("\n").filter((each) => each !== "");
  const containers = words(
    await docker(host, "ps", "-aq", "--filter", "label=hearth.config"),
  );
  if (containers.length > 0)
    await docker(host, "rm", "-f", "-v", ...containers);
  const volumes = words(
    await docker(host, "volume", "ls", "-q", "--filter", "name=^hearth-"),
  );
  if (volumes.length > 0) await docker(host, "volume", "rm", "-f", ...volumes);
  const networks = words(
    await docker(host, "network", "ls", "-q", "--filter", "name=^hearth"),
  );
  if (networks.length > 0) await docker(host, "network", "rm", ...networks);
  await docker(host, "image", "prune", "-f");
}

/** Why the scenarios cannot run here, in one sentence; null when they can. */
export function whyNot(): string | null {
  if (process.platform !== "linux")
    return "the scenarios need Linux: they start two Docker engines";
  if (process.getuid?.() !== 0)
    return "the scenarios need root: they start two Docker engines and a network namespace";
  try {
    execFileSync("sh", ["-c", "command -v dockerd || command -v apt-get"], {
      stdio: "ignore",
    });
  } catch {
    return "the scenarios need Docker: install dockerd (docker.io)";
  }
  try {
    execFileSync("sh", ["-c", "command -v go"], { stdio: "ignore" });
  } catch {
    if (process.env["HEARTH_PULUMI_PLUGINS"] !== "real")
      return "the scenarios need the pulumi command: install Go 1.26, which builds it, or the official command with HEARTH_PULUMI_PLUGINS=real";
  }
  return null;
}
