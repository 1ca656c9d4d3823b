import { readFileSync } from "node:fs";
import { z } from "zod";
import { execute, type Execution } from "../../core/execute.ts";
import { imageReferenceOf } from "../config/config.ts";
import type { HostName, HostSettings } from "../config/config-schema.ts";
import {
  dockerCommand,
  outputLines,
  sshCommand,
  type EngineAddress,
} from "../engine.ts";
import type { Listener } from "../config/listeners.ts";

const COMMAND_WITHIN_MS = 30_000;
const PULL_WITHIN_MS = 600_000;

interface ProbeTask {
  /** host: the host's own network; container: the network of the containers. */
  readonly from: "host" | "container";
  readonly bind?: readonly Listener[];
  readonly connect?: readonly Listener[];
  readonly fetch?: readonly string[];
}

const probeAnswer = z.object({
  /** Addresses of the probe's network, without loopback and link-local ones. */
  addresses: z.array(z.string()),
  freeBytes: z.number(),
  bind: z.array(z.string()),
  connect: z.array(z.string()),
  fetch: z.array(z.string()),
});
/** For each task "ok" or the error code, in the same order. */
type ProbeAnswer = Readonly<z.output<typeof probeAnswer>>;

const PROBE_LABEL = "hearth.probe";

/** Runs inside a container of the host. */
const PROBE_PROGRAM = readFileSync(
  new URL("probe.js", import.meta.url),
  "utf8",
);

/** Runs commands and probe containers on a host. Every other method throws an Error with one line of reason. */
export class CheckedHost {
  readonly name: HostName;
  readonly engine: EngineAddress;
  /** Probes run in the base image, which `up` needs anyway. */
  readonly image: string;

  constructor(name: HostName, settings: HostSettings) {
    const { docker: endpoint, sshOpts } = settings.hosts[name];
    this.name = name;
    this.engine = { endpoint, sshOpts };
    this.image = imageReferenceOf(settings, "nodeBase");
  }

  async docker(...args: readonly string[]): Promise<string> {
    return runCommand(dockerCommand(this.engine, args), COMMAND_WITHIN_MS);
  }

  /** Logs in without a password prompt; null for an engine that is reached without ssh. */
  async login(): Promise<Execution | null> {
    const ssh = sshCommand(this.engine);
    if (ssh === null) {
      return null;
    }
    const [file, ...args] = ssh;
    return execute(file, [...args, "true"], { timeoutMs: COMMAND_WITHIN_MS });
  }

  async pull(): Promise<void> {
    const { engine, image } = this;
    await this.docker("image", "inspect", "--format", "{{.Id}}", image).catch(
      () =>
        runCommand(
          dockerCommand(engine, ["pull", "--quiet", image]),
          PULL_WITHIN_MS,
        ),
    );
  }

  /** Number of the user who owns a directory of the host; null if it does not exist. */
  async ownerOf(directory: string): Promise<number | null> {
    try {
      return Number(
        await this.docker(...buildOwnerArgs(this.image, directory)),
      );
    } catch (error) {
      if (/does not exist/.test((error as Error).message)) {
        return null;
      }
      throw error;
    }
  }

  async probe({ from, ...task }: ProbeTask): Promise<ProbeAnswer> {
    const network = from === "host" ? ["--network", "host"] : [];
    const answer = await this.docker(
      ...buildProbeArgs(this.image, task, network),
    );
    return probeAnswer.parse(JSON.parse(answer));
  }

  /** Publishes listeners until `removeProbes`. */
  async listen(listeners: readonly Listener[]): Promise<void> {
    if (listeners.length > 0) {
      await this.docker(...buildListenArgs(this.image, listeners));
    }
  }

  async removeProbes(): Promise<void> {
    const found = await this.docker(
      "ps",
      "-aq",
      "--filter",
      `label=${PROBE_LABEL}`,
    );
    const ids = outputLines(found);
    if (ids.length > 0) {
      await this.docker("rm", "--force", ...ids);
    }
  }
}

function buildProbeArgs(
  image: string,
  task: object,
  options: readonly string[],
): readonly string[] {
  return [
    "run",
    "--rm",
    "--label",
    PROBE_LABEL,
    ...options,
    "--env",
    `PROBE=${JSON.stringify(task)}`,
    "--entrypoint",
    "node",
    image,
    "-e",
    PROBE_PROGRAM,
  ];
}

function buildListenArgs(
  image: string,
  listeners: readonly Listener[],
): readonly string[] {
  const ports = [...new Set(listeners.map(({ port }) => port))];
  return buildProbeArgs(image, { listen: ports }, [
    "--detach",
    ...listeners.flatMap(({ address, port }) => [
      "--publish",
      `${address.includes(":") ? `[${address}]` : address}:${port}:${port}`,
    ]),
  ]);
}

function buildOwnerArgs(image: string, directory: string): readonly string[] {
  return [
    "run",
    "--rm",
    "--label",
    PROBE_LABEL,
    // --volume would create the directory.
    "--mount",
    `type=bind,source=${directory},target=/at,readonly`,
    "--entrypoint",
    "stat",
    image,
    "-c",
    "%u",
    "/at",
  ];
}

async function runCommand(
  [file, ...args]: readonly [string, ...string[]],
  timeoutMs: number,
): Promise<string> {
  const { ok, stdout, reason } = await execute(file, args, { timeoutMs });
  if (!ok) {
    throw new Error(reason);
  }
  return stdout.trim();
}
