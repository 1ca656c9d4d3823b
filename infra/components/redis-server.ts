import type * as docker from "@pulumi/docker";
import * as pulumi from "@pulumi/pulumi";
import {
  authorityFile,
  authorityUpload,
  serverFile,
  serverUploads,
  type ServerCertificate,
} from "../certificates.ts";
import type { ContainerSpec } from "../container.ts";
import { ports, reach, type Host, publishedPorts } from "../hosts.ts";
import { containerName, networkName, volumeName } from "../names.ts";
import {
  buildRedisUsers,
  redisCli,
  redisPasswordFile,
  redisUsersFile,
} from "../redis-login.ts";
import { keepVolume, placeContainer, pullImage } from "./placed.ts";

export interface RedisServerArgs {
  /** Where it runs. */
  readonly host: Host;
  /** Reference of the image of Redis or Valkey. */
  readonly image: string;
  /** The container's limit; Redis uses a share of it. */
  readonly memoryMiB: number;
  /** Rotated in the running server; a new container starts with the new one. */
  readonly password: pulumi.Input<string>;
  /** Also accepted, during a rotation. */
  readonly previousPassword?: pulumi.Input<string> | undefined;
  /** For the host's address, issued by the stack's authority. */
  readonly certificate: ServerCertificate;
  /** PEM. */
  readonly authority: pulumi.Input<string>;
}

/** Connection of a container to Redis. */
export interface RedisConnection {
  readonly host: string;
  readonly port: number;
  readonly password: pulumi.Input<string>;
  /** Created before its users. */
  readonly server: pulumi.Resource;
}

/** Counters, limits and the response cache of both gateways. */
export class RedisServer extends pulumi.ComponentResource {
  readonly container: docker.Container;
  readonly #args: RedisServerArgs;

  constructor(
    name: string,
    args: RedisServerArgs,
    opts?: pulumi.ComponentResourceOptions,
  ) {
    super("hearth:data:RedisServer", name, {}, opts);
    this.#args = args;
    const volume = keepVolume(`${name}-data`, "redis", args.host, this);
    const image = pullImage(`${name}-image`, args.image, args.host, this);
    const spec = buildRedisArgs(args);
    this.container = placeContainer(name, spec, image, args.host, {
      parent: this,
      dependsOn: [volume],
      // Rotated in the running server (redis-login.ts), which must not be replaced for it; a container created for another
      // reason starts with the new password.
      ignoreChanges: spec.files.flatMap(({ path }, index) =>
        path === redisPasswordFile || path === redisUsersFile
          ? [`uploads[${index}].content`]
          : [],
      ),
    });
    this.registerOutputs({ container: this.container });
  }

  /** For containers on this host. */
  connectionFrom(host: Host): RedisConnection {
    return {
      ...reach(host, this.#args.host, "redis"),
      password: this.#args.password,
      server: this.container,
    };
  }
}

const CONFIG_FILE = "/run/hearth/redis.conf";

function buildRedisArgs(args: RedisServerArgs): ContainerSpec {
  const { password, previousPassword, memoryMiB } = args;
  const accepted = [
    password,
    ...(previousPassword === undefined ? [] : [previousPassword]),
  ];
  return {
    name: containerName(args.host.engine, "redis"),
    command: ["redis-server", CONFIG_FILE],
    // The image's own redis user; group 0 reads the uploads.
    user: "999:0",
    environment: {},
    files: [
      {
        path: redisPasswordFile,
        content: password,
        permissions: "0440",
      },
      {
        path: CONFIG_FILE,
        content: buildRedisConf(memoryMiB),
        permissions: "0440",
      },
      {
        path: redisUsersFile,
        content: pulumi.all(accepted).apply(buildRedisUsers),
        permissions: "0440",
      },
      authorityUpload(args.authority),
      ...serverUploads("redis", args.certificate, "0440"),
    ],
    ports: publishedPorts(args.host, "redis", [args.host.address]),
    volumes: [{ source: volumeName(args.host.engine, "redis"), path: "/data" }],
    networks: [{ name: networkName(args.host.engine), aliases: ["redis"] }],
    memoryMiB,
    capabilities: [],
    health: {
      // From a file through the environment: arguments are visible to every user of the host.
      test: ["CMD-SHELL", `${redisCli} ping | grep -q PONG`],
      interval: "10s",
      timeout: "5s",
      startPeriod: "10s",
      retries: 5,
    },
    graceSeconds: 30,
  };
}

function buildRedisConf(memoryMiB: number): string {
  return `bind * -::*
# No plain text.
port 0
tls-port ${ports.redis}
tls-cert-file ${serverFile("redis", "crt")}
tls-key-file ${serverFile("redis", "key")}
tls-ca-cert-file ${authorityFile}
# The password says who a client is.
tls-auth-clients no
# The network and the password are the boundary.
protected-mode no
aclfile ${redisUsersFile}
dir /data
# Below the container's limit: copy-on-write while the AOF is rewritten needs the rest.
maxmemory ${Math.floor(memoryMiB * 0.7)}mb
# Only what expires may go: cache entries do, counters of open windows do not.
maxmemory-policy volatile-lru
appendonly yes
appendfsync everysec
save ""
`;
}
