import { readFileSync } from "node:fs";
import { z } from "zod";
import { execute } from "../../core/execute.ts";
import {
  imageReferenceOf,
  type HostName,
  type HostSettings,
} from "../config/config.ts";
import { dockerCommand, sshCommand, type EngineAddress } from "../engine.ts";
import type { Listener } from "./needs.ts";

const COMMAND_WITHIN_MS = 30_000;
const PULL_WITHIN_MS = 600_000;

/** A host as the checks see it: commands on it, and probes in containers of it. Everything throws an Error with one line of reason. */
export interface CheckedHost {
  readonly name: HostName;
  readonly engine: EngineAddress;
  /** The image that probes run in; our own images stand on it, so `up` needs it anyway. */
  readonly image: string;
  readonly docker: (...args: string[]) => Promise<string>;
  /** Whether ssh lets us in without asking; nothing to do for an engine that is reached without it. */
  readonly ssh: () => Promise<void>;
  readonly pull: () => Promise<void>;
  /** The number of the user whom a directory of the host belongs to; null when there is none. */
  readonly ownerOf: (directory: string) => Promise<number | null>;
  readonly probe: (wish: ProbeWish) => Promise<ProbeAnswer>;
  /** Publishes listeners until `removeProbes`. */
  readonly listen: (listeners: readonly Listener[]) => Promise<void>;
  readonly removeProbes: () => Promise<void>;
}

export interface ProbeWish {
  /** host: the host's own network; container: as our containers see the world. */
  readonly from: "host" | "container";
  readonly bind?: readonly Listener[];
  readonly connect?: readonly Listener[];
  readonly fetch?: readonly string[];
}

const probeAnswer = z.object({
  /** Of the network that the probe runs in, without loopback and link-local ones. */
  addresses: z.array(z.string()),
  freeBytes: z.number(),
  bind: z.array(z.string()),
  connect: z.array(z.string()),
  fetch: z.array(z.string()),
});
/** For each wish "ok" or the code of the error, in the order of asking. */
export type ProbeAnswer = Readonly<z.output<typeof probeAnswer>>;

const PROBE_LABEL = "hearth.probe";

export function openHost(name: HostName, settings: HostSettings): CheckedHost {
  const { docker: endpoint, sshOpts } = settings.hosts[name];
  const engine = { endpoint, sshOpts };
  const image = imageReferenceOf(settings, "nodeBase");
  const program = readFileSync(new URL("probe.js", import.meta.url), "utf8");
  const docker = (...args: string[]) =>
    runCommand(dockerCommand(engine, args), COMMAND_WITHIN_MS);
  const start = (wish: object, ...options: string[]) =>
    docker(
      "run",
      "--rm",
      "--label",
      PROBE_LABEL,
      ...options,
      "--env",
      `PROBE=${JSON.stringify(wish)}`,
      "--entrypoint",
      "node",
      image,
      "-e",
      program,
    );

  return {
    name,
    engine,
    image,
    docker,
    ssh: async () => {
      const ssh = sshCommand(engine);
      if (ssh === null) {
        return;
      }
      await runCommand([...ssh, "true"], COMMAND_WITHIN_MS);
    },
    pull: async () => {
      await docker("image", "inspect", "--format", "{{.Id}}", image).catch(() =>
        runCommand(
          dockerCommand(engine, ["pull", "--quiet", image]),
          PULL_WITHIN_MS,
        ),
      );
    },
    ownerOf: async (directory) => {
      try {
        const owner = await docker(
          "run",
          "--rm",
          "--label",
          PROBE_LABEL,
          // Not --volume, which would make it.
          "--mount",
          `type=bind,source=${directory},target=/at,readonly`,
          "--entrypoint",
          "stat",
          image,
          "-c",
          "%u",
          "/at",
        );
        return Number(owner);
      } catch (error) {
        if (/does not exist/.test((error as Error).message)) {
          return null;
        }
        throw error;
      }
    },
    probe: async ({ from, ...wish }) => {
      const network = from === "host" ? ["--network", "host"] : [];
      return probeAnswer.parse(JSON.parse(await start(wish, ...network)));
    },
    listen: async (listeners) => {
      if (listeners.length === 0) {
        return;
      }
      await start(
        { listen: [...new Set(listeners.map(({ port }) => port))] },
        "--detach",
        ...listeners.flatMap(({ address, port }) => [
          "--publish",
          `${address.includes(":") ? `[${address}]` : address}:${port}:${port}`,
        ]),
      );
    },
    removeProbes: async () => {
      const found = await docker(
        "ps",
        "-aq",
        "--filter",
        `label=${PROBE_LABEL}`,
      );
      const ids = found.split("\n").filter((id) => id !== "");
      if (ids.length > 0) {
        await docker("rm", "--force", ...ids);
      }
    },
  };
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
