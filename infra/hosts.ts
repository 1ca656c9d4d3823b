import * as docker from "@pulumi/docker";
import {
  getProject,
  getStack,
  ResourceHook,
  type Output,
  type Resource,
} from "@pulumi/pulumi";
import type { HearthConfig, HostName } from "./config/config.ts";
import type { PublishedPort } from "./container.ts";
import type { StackEngine } from "./engine.ts";
import {
  refuseOthersVolumes,
  removeLeftover,
  removeLeftoverNetwork,
} from "./leftover.ts";
import { networkName, socketNetworkName } from "./names.ts";
import { isPrivate } from "./private-addresses.ts";

/** One host: its Docker provider and networks. Everything on it is made through `provider`. */
export interface Host {
  readonly name: HostName;
  /** Where the other host and the operator reach it. */
  readonly address: string;
  /** Where people and devices reach it; at a public address, by https alone. */
  readonly publish: readonly string[];
  /** The engine's own socket on that host. */
  readonly socket: string;
  /** How hooks reach its engine, and what the stack calls its own there. */
  readonly engine: StackEngine;
  /** Where it listens. */
  readonly ports: HearthConfig["ports"];
  readonly provider: docker.Provider;
  /** All but volumes depends on them: their hook refuses a host on which a stack of another state runs. */
  readonly networks: readonly Resource[];
  /** Of the network that our containers share, as Docker chose them. */
  readonly subnets: Output<readonly string[]>;
  /** On every container: an interrupted `up` leaves one behind, and "the name is already in use" would stop the next. */
  readonly beforeCreate: ResourceHook;
  /** On every volume: what another stack left under this name is not taken over. */
  readonly beforeVolume: ResourceHook;
}

export type Hosts = Readonly<Record<HostName, Host>>;

/** Ports inside containers; where a host listens, its configuration says. */
export const ports = {
  edge: 4000,
  edgeTls: 443,
  gateway: 4001,
  gatewayTls: 4444,
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
  // Without labels: a changed label of a network in use can neither be updated nor, in 30 s, replaced.
  const engine = {
    endpoint,
    sshOpts,
    prefix: config.prefix,
    stack: `${getProject()}/${getStack()}`,
  };
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
    beforeCreate: clearWay(`clear-way-${name}`, (container) =>
      removeLeftover(engine, container),
    ),
    beforeVolume: clearWay(`own-volume-${name}`, (volume) =>
      refuseOthersVolumes(engine, [volume]),
    ),
  };
}

/** A hook that removes what an interrupted `up` or a lost state left behind under the name that is to be made. */
export function clearWay(
  hook: string,
  remove: (name: string) => Promise<void>,
): ResourceHook {
  return new ResourceHook(hook, async ({ newInputs }) =>
    remove(String((newInputs as { readonly name?: unknown }).name)),
  );
}

/** Where containers on one host reach a service that is placed `at` one: by alias on the same host, else by address. */
export function reach(
  from: Pick<Host, "name">,
  at: Pick<Host, "name" | "address" | "ports">,
  service: "postgres" | "redis",
): { readonly host: string; readonly port: number } {
  return from.name === at.name
    ? { host: service, port: ports[service] }
    : { host: at.address, port: at.ports[service] };
}

/** All private addresses of a host that are published on, without repetition. */
export function everyAddress({
  publish,
  address,
}: Pick<Host, "publish" | "address">): readonly string[] {
  return [...new Set([...publish.filter(isPrivate), address])].toSorted();
}

/** As it stands in front of a port. */
export function bracketed(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}

/** A port of a host's TLS endpoint. */
export function tlsUrl(
  host: Pick<Host, "address" | "ports">,
  port: "gatewayTls" | "notesTls" | "console",
): string {
  return `https://${bracketed(host.address)}:${host.ports[port]}`;
}

export function otherHost(name: HostName): HostName {
  return name === "a" ? "b" : "a";
}

/** A port of a container of this host, published at these addresses where its configuration says. */
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
