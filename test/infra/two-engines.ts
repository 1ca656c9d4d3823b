import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { inProject } from "../../infra/project-files.ts";

const run = promisify(execFile);

type HostOf<T> = Readonly<Record<"a" | "b", T>>;

/** Addresses of the two test hosts (scripts/hosts.sh). */
export const addresses = { a: "10.77.0.1", b: "10.77.0.2" } as const;

/** The hosts of this machine: two real engines with the stand-in images. */
export interface TwoEngines {
  /** Argument of `docker -H`. */
  readonly endpoints: HostOf<string>;
  /** The engine's own socket. */
  readonly sockets: HostOf<string>;
  /** Host B as an operator reaches it. */
  readonly sshToB: { readonly endpoint: string; readonly sshOpts: string[] };
  /** A directory that is saved and restored together with both hosts. */
  readonly directory: string;
  /** One docker command on a host; its standard output. */
  docker(host: "a" | "b", ...args: string[]): Promise<string>;
}

/** Restores both hosts from the state that `machine.sh save` stored under this name, or with images only, and starts them. */
export async function startTwoEngines(state = "images"): Promise<TwoEngines> {
  if (process.env["HEARTH_MACHINE"] === undefined) {
    throw new Error(
      "the scenarios run on their own machines: npm run test:infra",
    );
  }
  await runScript("test/infra/machine.sh", "restore", state);
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
    directory: `${variable("HEARTH_TEST_HOSTS")}/stack`,
    docker: async (host, ...args) =>
      (
        await run("docker", ["-H", endpoints[host], ...args], {
          env: { ...process.env, DOCKER_BUILDKIT: "0" },
          maxBuffer: 1e8,
        })
      ).stdout,
  };
}

/** Runs a script of the project and returns its standard output. */
export async function runScript(
  script: string,
  ...args: string[]
): Promise<string> {
  return (await run(inProject(script), args, { maxBuffer: 1e8 })).stdout;
}
