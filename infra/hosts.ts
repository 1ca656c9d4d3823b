import * as docker from "@pulumi/docker";
import { ResourceHook, type Output, type Resource } from "@pulumi/pulumi";
import type { HearthConfig, HostName } from "./config.ts";
import type { EngineAddress } from "./engine.ts";
import { removeLeftover, removeLeftoverNetwork } from "./leftover.ts";
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
  /** How hooks reach its engine. */
  readonly engine: EngineAddress;
  readonly provider: docker.Provider;
  /** All but volumes depends on them: their hook refuses a host on which a stack of another state runs. */
  readonly networks: readonly Resource[];
  /** Of the network that our containers share, as Docker chose them. */
  readonly subnets: Output<readonly string[]>;
  /** On every container: an interrupted `up` leaves one behind, and "the name is already in use" would stop the next. */
  readonly beforeCreate: ResourceHook;
}

export type Hosts = Readonly<Record<HostName, Host>>;

/** Where containers of one host talk to each other by alias. */
export const networkName = "hearth";
/** Where the supervisor talks to the socket proxy: no way out of it. */
export const socketNetworkName = "hearth-socket";

/** Ports inside containers and, where published, on the hosts. */
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

export function createHosts(
  config: Pick<HearthConfig, "hosts" | "importRoles">,
): Hosts {
  return { a: createHost("a", config), b: createHost("b", config) };
}

function createHost(
  name: HostName,
  config: Pick<HearthConfig, "hosts" | "importRoles">,
): Host {
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
  const engine = { endpoint, sshOpts };
  const clearNetwork = clearWay(`clear-network-${name}`, (network) =>
    removeLeftoverNetwork(engine, network, {
      withContainers: config.importRoles !== "no",
    }),
  );
  const hooks = { beforeCreate: [clearNetwork] };
  const network = new docker.Network(
    `network-${name}`,
    { name: networkName },
    { provider, hooks },
  );
  const socketNetwork = new docker.Network(
    `socket-network-${name}`,
    { name: socketNetworkName, internal: true },
    { provider, hooks },
  );
  return {
    name,
    address,
    publish,
    socket,
    engine,
    provider,
    networks: [network, socketNetwork],
    subnets: network.ipamConfigs.apply((configs) =>
      (configs ?? []).flatMap(({ subnet }) => subnet ?? []),
    ),
    beforeCreate: clearWay(`clear-way-${name}`, (container) =>
      removeLeftover(engine, container),
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
  at: Pick<Host, "name" | "address">,
  service: "postgres" | "redis",
): { readonly host: string; readonly port: number } {
  return {
    host: from.name === at.name ? service : at.address,
    port: ports[service],
  };
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
  { address }: Pick<Host, "address">,
  port: "gatewayTls" | "notesTls" | "console",
): string {
  return `https://${bracketed(address)}:${ports[port]}`;
}

export function otherHost(name: HostName): HostName {
  return name === "a" ? "b" : "a";
}
