import * as docker from "@pulumi/docker";
import {
  getProject,
  getStack,
  ResourceHook,
  type Output,
  type Resource,
} from "@pulumi/pulumi";
import type { HearthConfig, HostName } from "./config/config-schema.ts";
import type { PublishedPort } from "./container.ts";
import { stackEngine, type StackEngine } from "./engine.ts";
import {
  rejectForeignVolumes,
  removeLeftover,
  removeLeftoverNetwork,
} from "./leftover.ts";
import { networkName, socketNetworkName } from "./names.ts";
import { isPrivateAddress } from "../core/network-addresses.ts";

/** One host: its Docker provider and networks. All of its resources are created through `provider`. */
export interface Host {
  readonly name: HostName;
  /** Address for the other host and the operator. */
  readonly address: string;
  /** Addresses for users and devices; public ones serve https only. */
  readonly publish: readonly string[];
  /** The engine's own socket on that host. */
  readonly socket: string;
  /** For hooks: its engine and the names of the stack's resources there. */
  readonly engine: StackEngine;
  /** Published ports. */
  readonly ports: HearthConfig["ports"];
  readonly provider: docker.Provider;
  /** Everything except volumes depends on them: their hook rejects a host that runs a stack of another state. */
  readonly networks: readonly Resource[];
  /** Subnets that Docker assigned to the shared network. */
  readonly subnets: Output<readonly string[]>;
  /** For every container: removes a leftover of an interrupted `up`, whose name would stop the next one. */
  readonly beforeCreate: ResourceHook;
  /** For every volume: rejects one of this name that belongs to another stack. */
  readonly beforeVolume: ResourceHook;
}

export type Hosts = Readonly<Record<HostName, Host>>;

/** Ports inside containers. The configuration defines the published ones. */
export const ports = {
  edge: 4000,
  edgeTls: 443,
  gateway: 4001,
  gatewayTls: 4444,
  /** Only inside the edge. */
  lateGateways: 4445,
  notes: 5984,
  notesTls: 6984,
  supervisor: 4080,
  /** The supervisor, by TLS. */
  console: 4443,
  postgres: 5432,
  redis: 6379,
  socketProxy: 2375,
} as const;

type HostsConfig = Pick<
  HearthConfig,
  "hosts" | "importRoles" | "ports" | "prefix"
>;

export function createHosts(config: HostsConfig): Hosts {
  return { a: createHost("a", config), b: createHost("b", config) };
}

function createHost(name: HostName, config: HostsConfig): Host {
  const {
    docker: endpoint,
    address,
    publish,
    socket,
    sshOpts,
  } = config.hosts[name];
  const ssh = endpoint.startsWith("ssh://");
  const provider = new docker.Provider(`host-${name}`, {
    host: endpoint,
    ...(ssh ? { sshOpts: [...sshOpts] } : {}),
  });
  // No labels: a changed label of a network in use can neither be updated nor replaced within 30 s.
  const engine = stackEngine(config, name, `${getProject()}/${getStack()}`);
  const clearNetwork = clearWay(`clear-network-${name}`, (network) =>
    removeLeftoverNetwork(engine, network, {
      withContainers: config.importRoles !== "no",
    }),
  );
  const hooks = { beforeCreate: [clearNetwork] };
  const network = new docker.Network(
    `network-${name}`,
    { name: networkName(engine) },
    { provider, hooks },
  );
  const socketNetwork = new docker.Network(
    `socket-network-${name}`,
    { name: socketNetworkName(engine), internal: true },
    { provider, hooks },
  );
  return {
    name,
    address,
    publish,
    socket,
    engine,
    ports: config.ports,
    provider,
    networks: [network, socketNetwork],
    subnets: network.ipamConfigs.apply((configs) =>
      (configs ?? []).flatMap(({ subnet }) => subnet ?? []),
    ),
    beforeCreate: clearWay(`clear-way-${name}`, (container, graceSeconds) =>
      removeLeftover(engine, container, graceSeconds),
    ),
    beforeVolume: clearWay(`own-volume-${name}`, (volume) =>
      rejectForeignVolumes(engine, [volume]),
    ),
  };
}

/**
 * A hook that removes a leftover of an interrupted `up` or a lost state with the name to be created. `graceSeconds` is how long a container
 * of that name may take to stop.
 */
export function clearWay(
  hook: string,
  remove: (name: string, graceSeconds?: number) => Promise<void>,
): ResourceHook {
  return new ResourceHook(hook, async ({ newInputs }) => {
    const { name, destroyGraceSeconds } = newInputs as {
      readonly name?: unknown;
      readonly destroyGraceSeconds?: number;
    };
    return remove(String(name), destroyGraceSeconds);
  });
}

/** Address of a service on host `at` for containers on host `from`: its alias on the same host, else the host's address. */
export function reach(
  from: Pick<Host, "name">,
  at: Pick<Host, "name" | "address" | "ports">,
  service: "postgres" | "redis",
): { readonly host: string; readonly port: number } {
  return from.name === at.name
    ? { host: service, port: ports[service] }
    : { host: at.address, port: at.ports[service] };
}

/** All private addresses on which a host publishes, without duplicates. */
export function everyAddress({
  publish,
  address,
}: Pick<Host, "publish" | "address">): readonly string[] {
  return [
    ...new Set([...publish.filter(isPrivateAddress), address]),
  ].toSorted();
}

/** In the form used before a port. */
export function bracketed(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}

/** A port of a host's TLS endpoint. */
export function tlsUrl(
  host: Pick<Host, "address" | "ports">,
  port: "gatewayTls" | "notesTls" | "console",
): string {
  return `https://${host.address}:${host.ports[port]}`;
}

export function otherHost(name: HostName): HostName {
  return name === "a" ? "b" : "a";
}

/** A container's port, published at these addresses on the configured port of the host. */
export function publishedPorts(
  host: Pick<Host, "ports">,
  port: keyof Host["ports"],
  addresses: readonly string[],
): readonly PublishedPort[] {
  return addresses.map((address) => ({
    address,
    port: host.ports[port],
    inside: ports[port],
  }));
}
