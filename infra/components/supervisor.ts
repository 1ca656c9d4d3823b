import type * as docker from "@pulumi/docker";
import * as pulumi from "@pulumi/pulumi";
import {
  allCertificates,
  authorityFile,
  authorityUpload,
  type Certificates,
} from "../certificates.ts";
import type { HearthConfig, HostName } from "../config.ts";
import { httpHealthTest, type ContainerSpec } from "../container.ts";
import {
  networkName,
  otherHost,
  ports,
  reach,
  socketNetworkName,
  tlsUrl,
  type Host,
  type Hosts,
} from "../hosts.ts";
import {
  gatewayAddresses,
  notesAddresses,
  supervisorAddresses,
} from "../outputs.ts";
import { readNamedFile } from "../project-files.ts";
import { builtImage } from "./built-image.ts";
import { keepVolume, placeContainer, secretFiles } from "./placed.ts";

/** Watches its own host's containers, probes the other host; the one on the data host runs the jobs. */
export class Supervisor extends pulumi.ComponentResource {
  readonly container: docker.Container;

  constructor(
    name: string,
    config: HearthConfig,
    certificates: Certificates,
    hosts: Hosts,
    host: Host,
    dependsOn: readonly pulumi.Resource[],
  ) {
    super("hearth:ops:Supervisor", name);
    const volumes = [keepVolume(`${name}-history`, historyVolume, host, this)];
    if (config.backupDirectory === "volume")
      volumes.push(keepVolume(`${name}-backups`, backupVolume, host, this));
    const image = builtImage(`${name}-image`, "supervisor", config, host, this);
    this.container = placeContainer(
      name,
      buildSupervisorArgs(config, certificates, hosts, host),
      image.imageId,
      host,
      { parent: this, dependsOn: [...volumes, ...dependsOn] },
    );
    this.registerOutputs({});
  }
}

const historyVolume = "hearth-supervisor";
const backupVolume = "hearth-backups";
const home = "/var/lib/hearth";
/** The certificates of the servers, for the check of their days. */
const watchedFile = "/run/hearth/servers.crt";

/** By the names that the supervisor calls them. */
function servicesOn(
  { placement }: HearthConfig,
  host: HostName,
): readonly string[] {
  const stores = (["notes", "postgres", "redis"] as const).filter(
    (store) => placement[store] === host,
  );
  return ["edge", "gateway", ...stores, "tls"];
}

/** Only where the jobs run: another host has no use for the key of all backups. */
function offsiteSecrets(
  { offsiteIdentity, offsiteRcloneConfig }: HearthConfig,
  hasJobs: boolean,
): Readonly<Record<string, string>> {
  if (!hasJobs) return {};
  return {
    ...(offsiteIdentity === undefined
      ? {}
      : { OFFSITE_IDENTITY: offsiteIdentity }),
    ...(offsiteRcloneConfig === undefined
      ? {}
      : { OFFSITE_RCLONE_CONFIG: offsiteRcloneConfig }),
  };
}

export function buildSupervisorArgs(
  config: HearthConfig,
  certificates: Certificates,
  hosts: Hosts,
  host: Host,
): ContainerSpec {
  const data = config.placement.postgres;
  const postgres = reach(hosts, host.name, data, "postgres");
  const redis = reach(hosts, host.name, config.placement.redis, "redis");
  const peer = hosts[otherHost(host.name)];
  const certified = config.edge.hostname ?? config.edge.notesHostname;
  const databaseUrl = (role: string, password: string) =>
    `postgresql://${role}:${password}@${postgres.host}:${postgres.port}/hearth?sslmode=verify-full&sslrootcert=${authorityFile}`;
  const secrets = secretFiles(
    {
      ...config.alertSecrets,
      ...offsiteSecrets(config, host.name === data),
      BACKUP_DATABASE_URL: databaseUrl("backup", config.backupPassword),
      HEARTH_OPERATOR_PASSWORD: config.operatorPassword,
      NOTES_ADMIN_PASSWORD: config.notesAdminPassword,
      PROXY_MASTER_KEY: config.masterKey,
      REDIS_PASSWORD: config.redisPassword,
      SUPERVISOR_DATABASE_URL: databaseUrl(
        "supervisor",
        config.supervisorPassword,
      ),
    },
    "0440",
  );
  const ownConfig =
    config.supervisorConfig === undefined
      ? []
      : [
          {
            path: "/app/supervisor.yaml",
            content: pulumi.secret(
              readNamedFile("hearth:supervisorConfig", config.supervisorConfig),
            ),
            permissions: "0440" as const,
          },
        ];
  return {
    name: "hearth-supervisor",
    user: "1000:0",
    environment: {
      ...secrets.environment,
      DOCKER_HOST: `tcp://socket-proxy:${ports.socketProxy}`,
      // What the snippets for key holders name.
      GATEWAY_PUBLIC_URL: gatewayAddresses(config)[0] ?? "",
      GATEWAY_URL: `http://gateway:${ports.gateway}`,
      // What is to run on this host besides the supervisor: each is looked at, also one that is gone.
      HEARTH_CONTAINERS: servicesOn(config, host.name).join(" "),
      HEARTH_CERTIFICATES: watchedFile,
      HEARTH_HOME: home,
      // What messages are signed with; the container's own name is a random one.
      HEARTH_HOST_NAME: `host ${host.name.toUpperCase()}`,
      HEARTH_JOBS: host.name === data ? "on" : "off",
      HEARTH_PEER_URL: tlsUrl(peer, "console"),
      // Requests come through the TLS endpoint; whose they are, it says.
      HEARTH_PROXY_HOPS: "1",
      HEARTH_RUNTIME: "docker",
      HEARTH_SUPERVISOR_HOST: "0.0.0.0",
      HEARTH_SUPERVISOR_PORT: String(ports.supervisor),
      // For `docker exec hearth-supervisor hearth …`.
      HEARTH_URL: `http://127.0.0.1:${ports.supervisor}`,
      // For the other host's endpoint.
      NODE_EXTRA_CA_CERTS: authorityFile,
      // What Setup URIs name, and what the doctor looks through.
      NOTES_PUBLIC_URL: notesAddresses(config)[0] ?? "",
      NOTES_URL:
        config.placement.notes === host.name
          ? `http://notes:${ports.notes}`
          : tlsUrl(peer, "notesTls"),
      PEER_GATEWAY_URL: tlsUrl(peer, "gatewayTls"),
      REDIS_CA_FILE: authorityFile,
      REDIS_HOST: redis.host,
      REDIS_PORT: String(redis.port),
      // What the links of `hearth open` name.
      SUPERVISOR_PUBLIC_URL: supervisorAddresses(config, host.name)[0] ?? "",
      ...(config.offsiteTarget === undefined || host.name !== data
        ? {}
        : { OFFSITE_TARGET: config.offsiteTarget }),
      // A certificate of the edge's own making is trusted by nobody here, and renewed by itself.
      ...(certified === undefined || config.edge.tls === "internal"
        ? {}
        : { EDGE_URL: `https://${certified}` }),
      ...(ownConfig.length === 0
        ? {}
        : { HEARTH_SUPERVISOR_CONFIG: "/app/supervisor.yaml" }),
    },
    files: [
      ...secrets.files,
      ...ownConfig,
      authorityUpload(certificates),
      {
        path: watchedFile,
        content: allCertificates(certificates),
        permissions: "0444",
      },
    ],
    // Only the TLS endpoint leads to it.
    ports: [],
    volumes: [
      { source: historyVolume, path: home },
      {
        source:
          config.backupDirectory === "volume"
            ? backupVolume
            : config.backupDirectory,
        path: `${home}/backups`,
      },
    ],
    networks: [
      { name: networkName, aliases: ["supervisor"] },
      { name: socketNetworkName, aliases: [] },
    ],
    memoryMiB: config.memory.supervisor,
    capabilities: [],
    health: {
      test: httpHealthTest(ports.supervisor, "/healthz"),
      interval: "10s",
      timeout: "5s",
      startPeriod: "10s",
      retries: 3,
    },
    graceSeconds: 20,
  };
}
