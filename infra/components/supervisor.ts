import type * as docker from "@pulumi/docker";
import * as pulumi from "@pulumi/pulumi";
import { authorityFile, authorityUpload } from "../certificates.ts";
import { httpHealthTest, type ContainerSpec } from "../container.ts";
import { ports, tlsUrl, type Host } from "../hosts.ts";
import {
  containerName,
  networkName,
  socketNetworkName,
  stackVariable,
  volumeName,
} from "../names.ts";
import {
  keepVolume,
  operatorsFile,
  placeContainer,
  secretFiles,
} from "./placed.ts";
import type { DatabaseLogin } from "./postgres-server.ts";
import { programImage, type ImageSource } from "./program-image.ts";
import type { RedisConnection } from "./redis-server.ts";

export interface SupervisorArgs {
  /** Where it runs. */
  readonly host: Host;
  /** The other host, whose supervisor and gateway it probes. */
  readonly peer: Pick<Host, "address" | "ports">;
  readonly image: ImageSource;
  readonly memoryMiB: number;
  /** Whether it runs the jobs: exactly one of the two does. */
  readonly hasJobs: boolean;
  /** The other services of this host, by their names on the status page: each is checked even if its container is missing. */
  readonly services: readonly string[];
  /** For reports. */
  readonly database: DatabaseLogin;
  /** For backups and drills. */
  readonly backupDatabase: DatabaseLogin;
  readonly redis: RedisConnection;
  /** Where it reaches the notes store. */
  readonly notesUrl: string;
  /** An edge probed by name for the expiry of its certificate; undefined for an untrusted one. */
  readonly edgeUrl?: string | undefined;
  /** Authority of the stack's certificates; PEM. */
  readonly authority: pulumi.Input<string>;
  /** The servers' certificates, for the expiry check; PEM. */
  readonly certificates: pulumi.Input<string>;
  readonly masterKey: pulumi.Input<string>;
  readonly notesAdminPassword: pulumi.Input<string>;
  /** Of the user `operator`. */
  readonly operatorPassword: pulumi.Input<string>;
  /** Secrets referenced as ${NAME} in its configuration. */
  readonly alertSecrets: Readonly<Record<string, pulumi.Input<string>>>;
  /** The operator's configuration in place of the shipped one: YAML. */
  readonly config?: string | undefined;
  /** "volume", or a directory of the host that belongs to user 1000. */
  readonly backups: string;
  /** Where encrypted backups go. */
  readonly offsite?: OffsiteArgs | undefined;
  /** Public address of each service, for links and messages; "" if there is none. */
  readonly publicUrls: {
    readonly gateway: string;
    readonly notes: string;
    readonly supervisor: string;
  };
  /** The services it watches, created first: it would report missing ones as down. */
  readonly watches: readonly pulumi.Resource[];
}

export interface OffsiteArgs {
  /** REMOTE:PATH, as rclone takes it. */
  readonly target: string;
  /** The age identity for which backups are encrypted. */
  readonly identity: pulumi.Input<string>;
  /** Content of an rclone.conf with the remote. */
  readonly rcloneConfig: pulumi.Input<string>;
}

/** Watches its own host's containers and probes the other host; the one on the data host runs the jobs. */
export class Supervisor extends pulumi.ComponentResource {
  readonly container: docker.Container;

  constructor(
    name: string,
    args: SupervisorArgs,
    opts?: pulumi.ComponentResourceOptions,
  ) {
    super("hearth:ops:Supervisor", name, {}, opts);
    const volumes = [
      keepVolume(`${name}-history`, "supervisor", args.host, this),
    ];
    if (args.backups === "volume") {
      volumes.push(keepVolume(`${name}-backups`, "backups", args.host, this));
    }
    const image = programImage(`${name}-image`, args.image, args.host, this);
    this.container = placeContainer(
      name,
      buildSupervisorArgs(args),
      image,
      args.host,
      {
        parent: this,
        dependsOn: [
          ...volumes,
          args.database.role,
          args.backupDatabase.role,
          ...args.watches,
        ],
      },
    );
    this.registerOutputs({ container: this.container });
  }
}

const HOME = "/var/lib/hearth";
const WATCHED_FILE = "/run/hearth/servers.crt";
const CONFIG_FILE = "/app/supervisor.yaml";

function buildSupervisorArgs(args: SupervisorArgs): ContainerSpec {
  const { host } = args;
  const secrets = buildSecretFiles(args);
  const ownConfig =
    args.config === undefined ? [] : [operatorsFile(CONFIG_FILE, args.config)];
  return {
    name: containerName(host.engine, "supervisor"),
    user: "1000:0",
    environment: { ...secrets.environment, ...buildEnvironment(args) },
    files: [
      ...secrets.files,
      ...ownConfig,
      authorityUpload(args.authority),
      {
        path: WATCHED_FILE,
        content: args.certificates,
        permissions: "0444",
      },
    ],
    // Reachable only through the TLS endpoint.
    ports: [],
    volumes: [
      { source: volumeName(host.engine, "supervisor"), path: HOME },
      {
        source:
          args.backups === "volume"
            ? volumeName(host.engine, "backups")
            : args.backups,
        path: `${HOME}/backups`,
      },
    ],
    networks: [
      { name: networkName(host.engine), aliases: ["supervisor"] },
      { name: socketNetworkName(host.engine), aliases: [] },
    ],
    memoryMiB: args.memoryMiB,
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

function buildSecretFiles(
  args: SupervisorArgs,
): ReturnType<typeof secretFiles> {
  const { offsite } = args;
  return secretFiles(
    {
      ...args.alertSecrets,
      ...(offsite === undefined
        ? {}
        : {
            OFFSITE_IDENTITY: offsite.identity,
            OFFSITE_RCLONE_CONFIG: offsite.rcloneConfig,
          }),
      BACKUP_DATABASE_URL: args.backupDatabase.url,
      HEARTH_OPERATOR_PASSWORD: args.operatorPassword,
      NOTES_ADMIN_PASSWORD: args.notesAdminPassword,
      PROXY_MASTER_KEY: args.masterKey,
      REDIS_PASSWORD: args.redis.password,
      SUPERVISOR_DATABASE_URL: args.database.url,
    },
    "0440",
  );
}

/** Variables without secrets. */
function buildEnvironment(args: SupervisorArgs): ContainerSpec["environment"] {
  const { host, peer, offsite, redis } = args;
  return {
    DOCKER_HOST: `tcp://socket-proxy:${ports.socketProxy}`,
    // For the snippets for key holders.
    GATEWAY_PUBLIC_URL: args.publicUrls.gateway,
    GATEWAY_URL: `http://gateway:${ports.gateway}`,
    HEARTH_CONTAINER_PREFIX: host.engine.prefix,
    HEARTH_CONTAINERS: args.services.join(" "),
    HEARTH_CERTIFICATES: WATCHED_FILE,
    HEARTH_HOME: HOME,
    // Signature of messages; the container's hostname is random.
    HEARTH_HOST_NAME: `host ${host.name.toUpperCase()}`,
    HEARTH_JOBS: args.hasJobs ? "on" : "off",
    HEARTH_PEER_URL: tlsUrl(peer, "console"),
    // Requests come through the TLS endpoint, which states the client's address.
    HEARTH_PROXY_HOPS: "1",
    HEARTH_RUNTIME: "docker",
    HEARTH_SUPERVISOR_HOST: "0.0.0.0",
    HEARTH_SUPERVISOR_PORT: String(ports.supervisor),
    // For `docker exec hearth-supervisor hearth …`.
    HEARTH_URL: `http://127.0.0.1:${ports.supervisor}`,
    // For the other host's endpoint.
    NODE_EXTRA_CA_CERTS: authorityFile,
    // For Setup URIs and the doctor.
    NOTES_PUBLIC_URL: args.publicUrls.notes,
    NOTES_URL: args.notesUrl,
    PEER_GATEWAY_URL: tlsUrl(peer, "gatewayTls"),
    REDIS_CA_FILE: authorityFile,
    REDIS_HOST: redis.host,
    REDIS_PORT: String(redis.port),
    // For the links of `hearth open`.
    SUPERVISOR_PUBLIC_URL: args.publicUrls.supervisor,
    ...(offsite === undefined ? {} : { OFFSITE_TARGET: offsite.target }),
    ...(args.edgeUrl === undefined ? {} : { EDGE_URL: args.edgeUrl }),
    ...(args.config === undefined
      ? {}
      : { HEARTH_SUPERVISOR_CONFIG: CONFIG_FILE }),
    ...stackVariable(host.engine),
  };
}
