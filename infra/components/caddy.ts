import type { ContainerSpec } from "../container.ts";
import { containerName, networkName, type StackNames } from "../names.ts";
import { MEMORY_MIB } from "../config/memory-limits.ts";

const CADDYFILE_PATH = "/etc/caddy/Caddyfile";
/** Inside the container only. */
const HEALTH_PORT = 2020;

const healthSite = `http://:${HEALTH_PORT} {
	bind 127.0.0.1
	respond "ok"
}
`;

/** A container running Caddy with this configuration. */
export function caddySpec(
  {
    alias,
    engine,
    caddyfile,
    files,
  }: Pick<ContainerSpec, "files"> & {
    readonly alias: "edge" | "tls";
    readonly engine: StackNames;
    readonly caddyfile: string;
  },
  { ports, volumes }: Pick<ContainerSpec, "ports" | "volumes">,
): ContainerSpec {
  return {
    name: containerName(engine, alias),
    command: [
      "caddy",
      "run",
      "--config",
      CADDYFILE_PATH,
      "--adapter",
      "caddyfile",
    ],
    environment: {},
    files: [
      {
        path: CADDYFILE_PATH,
        content: `${caddyfile}\n${healthSite}`,
        permissions: "0444",
      },
      ...files,
    ],
    ports,
    volumes,
    networks: [{ name: networkName(engine), aliases: [alias] }],
    memoryMiB: MEMORY_MIB.caddy,
    // The binary has it as a file capability and does not start without it.
    capabilities: ["CAP_NET_BIND_SERVICE"],
    health: {
      test: [
        "CMD",
        "wget",
        "-q",
        "-O",
        "/dev/null",
        `http://127.0.0.1:${HEALTH_PORT}/`,
      ],
      interval: "10s",
      timeout: "5s",
      startPeriod: "5s",
      retries: 3,
    },
    graceSeconds: 30,
  };
}
