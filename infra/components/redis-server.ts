import type * as docker from "@pulumi/docker";
import * as pulumi from "@pulumi/pulumi";
import {
  authorityFile,
  authorityUpload,
  serverFile,
  serverUploads,
  type Certificates,
} from "../certificates.ts";
import { imageReferenceOf, type HearthConfig } from "../config.ts";
import type { ContainerSpec } from "../container.ts";
import { networkName, ports, type Host } from "../hosts.ts";
import {
  buildRedisUsers,
  redisCli,
  redisPasswordFile,
  redisPasswords,
  redisUsersFile,
} from "../redis-login.ts";
import { keepVolume, placeContainer, pullImage } from "./placed.ts";

/** Counters, limits and the response cache of both gateways. */
export class RedisServer extends pulumi.ComponentResource {
  readonly container: docker.Container;

  constructor(
    name: string,
    config: HearthConfig,
    certificates: Certificates,
    host: Host,
  ) {
    super("hearth:data:RedisServer", name);
    const volume = keepVolume(`${name}-data`, volumeName, host, this);
    const image = pullImage(
      `${name}-image`,
      imageReferenceOf(config, "redis"),
      host,
      this,
    );
    const spec = buildRedisArgs(config, certificates, host);
    this.container = placeContainer(name, spec, image.imageId, host, {
      parent: this,
      dependsOn: [volume],
      // Rotated in the running server (redis-login.ts), which must not be replaced for it; one that is made for another
      // reason carries the new password.
      ignoreChanges: spec.files.flatMap(({ path }, index) =>
        path === redisPasswordFile || path === redisUsersFile
          ? [`uploads[${index}].content`]
          : [],
      ),
    });
    this.registerOutputs({});
  }
}

const volumeName = "hearth-redis";
const configFile = "/run/hearth/redis.conf";

export function buildRedisArgs(
  config: HearthConfig,
  certificates: Certificates,
  host: Host,
): ContainerSpec {
  return {
    name: "hearth-redis",
    command: ["redis-server", configFile],
    // The image's own redis user; group 0 reads the uploads.
    user: "999:0",
    environment: {},
    files: [
      {
        path: redisPasswordFile,
        content: pulumi.secret(config.redisPassword),
        permissions: "0440",
      },
      {
        path: configFile,
        content: buildRedisConf(config),
        permissions: "0440",
      },
      {
        path: redisUsersFile,
        content: pulumi.secret(buildRedisUsers(redisPasswords(config))),
        permissions: "0440",
      },
      authorityUpload(certificates),
      ...serverUploads("redis", certificates.redis, "0440"),
    ],
    ports: [{ address: host.address, port: ports.redis }],
    volumes: [{ source: volumeName, path: "/data" }],
    networks: [{ name: networkName, aliases: ["redis"] }],
    memoryMiB: config.memory.redis,
    capabilities: [],
    health: {
      // From a file and by the environment: an argument would be seen by everybody on the host.
      test: ["CMD-SHELL", `${redisCli} ping | grep -q PONG`],
      interval: "10s",
      timeout: "5s",
      startPeriod: "10s",
      retries: 5,
    },
    graceSeconds: 30,
  };
}

function buildRedisConf(config: HearthConfig): string {
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
maxmemory ${Math.floor(config.memory.redis * 0.7)}mb
# Only what expires may go: cache entries do, counters of open windows do not.
maxmemory-policy volatile-lru
appendonly yes
appendfsync everysec
save ""
`;
}
