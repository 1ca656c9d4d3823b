import type * as docker from "@pulumi/docker";
import * as pulumi from "@pulumi/pulumi";
import { httpHealthTest, type ContainerSpec } from "../container.ts";
import { ports, type Host } from "../hosts.ts";
import { containerName, socketNetworkName, type StackNames } from "../names.ts";
import { placeContainer, pullImage } from "./placed.ts";
import { MEMORY_MIB } from "../config/memory-limits.ts";

export interface SocketProxyArgs {
  /** The host whose Docker socket it guards. */
  readonly host: Host;
  /** Reference of HAProxy's image. */
  readonly image: string;
}

/** Guards the host's Docker socket: full access to it equals root on the host. */
export class SocketProxy extends pulumi.ComponentResource {
  readonly container: docker.Container;

  constructor(
    name: string,
    args: SocketProxyArgs,
    opts?: pulumi.ComponentResourceOptions,
  ) {
    super("hearth:ops:SocketProxy", name, {}, opts);
    const image = pullImage(`${name}-image`, args.image, args.host, this);
    this.container = placeContainer(
      name,
      buildSocketProxyArgs(args),
      image,
      args.host,
      { parent: this },
    );
    this.registerOutputs({ container: this.container });
  }
}

const CONFIG_FILE = "/usr/local/etc/haproxy/haproxy.cfg";

/** The containers that the supervisor may inspect and restart: all except the proxy itself. */
const OURS = [
  "couchdb",
  "edge",
  "gateway",
  "postgres",
  "redis",
  "supervisor",
  "tls",
] as const;

function buildSocketProxyArgs({ host }: SocketProxyArgs): ContainerSpec {
  return {
    name: containerName(host.engine, "socket-proxy"),
    command: ["haproxy", "-W", "-db", "-f", CONFIG_FILE],
    // The socket belongs to root, who has no other privileges without capabilities.
    user: "0:0",
    environment: {},
    files: [
      {
        path: CONFIG_FILE,
        content: buildSocketProxyConfig(host.engine),
        permissions: "0444",
      },
    ],
    ports: [],
    volumes: [{ source: host.socket, path: "/var/run/docker.sock" }],
    networks: [
      { name: socketNetworkName(host.engine), aliases: ["socket-proxy"] },
    ],
    memoryMiB: MEMORY_MIB.socketProxy,
    capabilities: [],
    health: {
      // An engine that was restarted without its containers (live-restore) may have a new socket, which only a restarted
      // container sees. The engine runs this test: it is up.
      test: httpHealthTest(
        ports.socketProxy,
        "/healthz",
        "{ kill 1; exit 1; }",
      ),
      interval: "10s",
      timeout: "5s",
      startPeriod: "5s",
      retries: 3,
    },
    graceSeconds: 10,
  };
}

/**
 * Exact paths only: archive and export read any file, exec and create run anything. Events contain labels and command lines of
 * every container: the supervisor asks only whether one of ours ran out of memory, in one form, for a past time.
 */
export function buildSocketProxyConfig(
  engine: Pick<StackNames, "prefix">,
): string {
  const names = OURS.map((each) => containerName(engine, each)).join("|");
  return `global
  maxconn 100
  log stdout format raw local0 notice

defaults
  mode http
  timeout connect 5s
  timeout client 1m
  timeout server 1m
  # A restart waits for the container's drain.
  timeout tunnel 5m

frontend docker
  bind :${ports.socketProxy}
  monitor-uri /healthz
  monitor fail if { nbsrv(engine) eq 0 }
  # A normalised path is matched, and what is encoded in a strange way is refused.
  acl plain path -m reg ^[A-Za-z0-9._/-]*$
  acl get method GET
  acl post method POST
  acl list path -m reg ^(/v1\\.[0-9]+)?/containers/json$
  acl look path -m reg ^(/v1\\.[0-9]+)?/containers/(${names})/(json|logs|stats)$
  acl again path -m reg ^(/v1\\.[0-9]+)?/containers/(${names})/restart$
  acl events path -m reg ^(/v1\\.[0-9]+)?/events$
  # The whole query: the engine reads a repeated parameter differently, and without an end it sends new events forever.
  acl memory query -m reg ^since=[0-9]{1,12}\\.[0-9]{3}&until=[0-9]{1,12}\\.[0-9]{3}&filters=%7B%22container%22%3A%5B%22(${names})%22%5D%2C%22event%22%3A%5B%22oom%22%5D%7D$
  acl past url_param(until),word(1,.),sub(txn.now) le 0
  http-request set-var(txn.now) date
  http-request deny deny_status 403 unless plain
  http-request allow if get list
  http-request allow if get look
  http-request allow if post again
  http-request allow if get events memory past
  http-request deny deny_status 403
  default_backend engine

backend engine
  timeout server 5m
  server engine unix@/var/run/docker.sock check inter 5s
`;
}
