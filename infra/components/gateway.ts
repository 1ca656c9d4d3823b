import type * as docker from "@pulumi/docker";
import * as pulumi from "@pulumi/pulumi";
import {
  authorityFile,
  authorityUpload,
  type Certificates,
} from "../certificates.ts";
import type { HearthConfig } from "../config.ts";
import { httpHealthTest, type ContainerSpec } from "../container.ts";
import { readGatewaySettings } from "../gateway-settings.ts";
import {
  networkName,
  otherHost,
  ports,
  reach,
  type Host,
  type Hosts,
} from "../hosts.ts";
import { builtImage } from "./built-image.ts";
import { keepVolume, placeContainer, secretFiles } from "./placed.ts";
import { gatewayRoleName } from "./postgres-server.ts";

/** The AI gateway of one host. */
export class Gateway extends pulumi.ComponentResource {
  readonly container: docker.Container;

  constructor(
    name: string,
    config: HearthConfig,
    certificates: Certificates,
    hosts: Hosts,
    host: Host,
    /** Among them the other gateway, for the second of the two: never both are away. */
    dependsOn: readonly pulumi.Resource[],
  ) {
    super("hearth:gateway:Gateway", name);
    const journal = keepVolume(`${name}-journal`, volumeName, host, this);
    const image = builtImage(`${name}-image`, "gateway", config, host, this);
    this.container = placeContainer(
      name,
      buildGatewayArgs(config, certificates, hosts, host),
      image.imageId,
      host,
      { parent: this, dependsOn: [journal, ...dependsOn] },
    );
    this.registerOutputs({});
  }
}

const volumeName = "hearth-journal";
const journalDirectory = "/var/lib/hearth/journal";
const configFile = "/app/config.yaml";
const layerFile = "/app/hearth.yaml";

export function buildGatewayArgs(
  config: HearthConfig,
  certificates: Certificates,
  hosts: Hosts,
  host: Host,
): ContainerSpec {
  const postgres = reach(
    hosts,
    host.name,
    config.placement.postgres,
    "postgres",
  );
  const redis = reach(hosts, host.name, config.placement.redis, "redis");
  const secrets = secretFiles(
    {
      ...config.providerKeys,
      DATABASE_URL: `postgresql://${gatewayRoleName(config)}:${config.gatewayPassword}@${postgres.host}:${postgres.port}/hearth?sslmode=verify-full&sslrootcert=${authorityFile}`,
      HEARTH_SALT_KEY: config.saltKey,
      PROXY_MASTER_KEY: config.masterKey,
      REDIS_PASSWORD: config.redisPassword,
      ...(config.masterKeyPrevious === undefined
        ? {}
        : { PROXY_MASTER_KEY_PREVIOUS: config.masterKeyPrevious }),
    },
    "0440",
  );
  const settings = readGatewaySettings(config, {
    drain_timeout: config.drainTimeout,
    // The two edges: the local one and the TLS endpoint come from Docker's own networks.
    trusted_proxies: ["172.16.0.0/12", hosts[otherHost(host.name)].address],
  });
  return {
    name: "hearth-gateway",
    user: "1000:0",
    environment: {
      ...secrets.environment,
      HEARTH_DRAIN_NOTICE: `${config.drainNotice}s`,
      HEARTH_EXTRA_CONFIG: layerFile,
      HEARTH_GATEWAY_CONFIG: configFile,
      HEARTH_GATEWAY_HOST: "0.0.0.0",
      HEARTH_GATEWAY_PORT: String(ports.gateway),
      HEARTH_JOURNAL_DIR: journalDirectory,
      REDIS_CA_FILE: authorityFile,
      REDIS_HOST: redis.host,
      REDIS_PORT: String(redis.port),
      ...(config.masterKeyPreviousUntil === undefined
        ? {}
        : { PROXY_MASTER_KEY_PREVIOUS_UNTIL: config.masterKeyPreviousUntil }),
      ...(config.localRunnerA === undefined
        ? {}
        : { LOCAL_RUNNER_A_URL: config.localRunnerA }),
      ...(config.localRunnerB === undefined
        ? {}
        : { LOCAL_RUNNER_B_URL: config.localRunnerB }),
    },
    files: [
      ...secrets.files,
      authorityUpload(certificates),
      {
        path: configFile,
        content: pulumi.secret(settings.file),
        permissions: "0440",
      },
      {
        path: layerFile,
        content: pulumi.secret(settings.layer),
        permissions: "0440",
      },
    ],
    // The edge reaches it inside the host, the other host through the TLS endpoint.
    ports: [],
    volumes: [{ source: volumeName, path: journalDirectory }],
    networks: [{ name: networkName, aliases: ["gateway"] }],
    memoryMiB: config.memory.gateway,
    capabilities: [],
    health: {
      // Not readiness: a gateway whose database is away lives, and restarting it would lose what it knows.
      test: httpHealthTest(ports.gateway, "/health/liveliness"),
      interval: "10s",
      timeout: "5s",
      startPeriod: "10s",
      retries: 3,
    },
    // Readiness says 503 for longer than two of the edge's probes before the listener closes; then calls finish.
    graceSeconds: config.drainTimeout + config.drainNotice + 10,
  };
}
