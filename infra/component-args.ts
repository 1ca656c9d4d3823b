import {
  allCertificates,
  certificatesOf,
  postgresNames,
  type Certificates,
} from "./certificates.ts";
import type { CouchServerArgs } from "./components/couch-server.ts";
import type { EdgeArgs } from "./components/edge.ts";
import type { GatewayArgs } from "./components/gateway.ts";
import {
  gatewayRoleName,
  type LoginArgs,
  type PostgresServer,
  type PostgresServerArgs,
} from "./components/postgres-server.ts";
import type { ImageSource } from "./components/program-image.ts";
import type {
  RedisServer,
  RedisServerArgs,
} from "./components/redis-server.ts";
import type { SocketProxyArgs } from "./components/socket-proxy.ts";
import type { OffsiteArgs, SupervisorArgs } from "./components/supervisor.ts";
import type { TlsEndpointArgs } from "./components/tls-endpoint.ts";
import { imageReferenceOf } from "./config/config.ts";
import type { HostName } from "./config/config-schema.ts";
import { readGatewaySettings } from "./gateway-settings.ts";
import { createHosts, otherHost, ports, tlsUrl, type Hosts } from "./hosts.ts";
import { imageContext, RCLONE_PACKAGES } from "./images/image-context.ts";
import {
  gatewayAddresses,
  httpsUrl,
  notesAddresses,
  supervisorAddresses,
} from "./outputs.ts";
import type { ProgramConfig } from "./config/program-config.ts";
import { readNamedFile } from "./project-files.ts";

/** Arguments of the components of one stack. */
interface Blueprint {
  readonly config: ProgramConfig;
  readonly hosts: Hosts;
  readonly certificates: Certificates;
  /** Image sources of Hearth's own programs. */
  readonly images: Readonly<Record<"gateway" | "supervisor", ImageSource>>;
}

/** Registers the hosts' providers and networks. Throws one sentence if a package required by an image is not installed. */
export function drawBlueprint(config: ProgramConfig): Blueprint {
  const base = imageReferenceOf(config, "nodeBase");
  const packages = config.offsiteTarget === undefined ? [] : RCLONE_PACKAGES;
  return {
    config,
    hosts: createHosts(config),
    certificates: certificatesOf(config),
    images: {
      gateway: config.images.gateway ?? imageContext("gateway", base),
      supervisor:
        config.images.supervisor ?? imageContext("supervisor", base, packages),
    },
  };
}

export function postgresArgs({
  config,
  hosts,
  certificates,
}: Blueprint): PostgresServerArgs {
  const host = hosts[config.placement.postgres];
  const at = config.postgresAt ?? {
    host: host.address,
    port: config.ports.postgres,
  };
  const { importRoles } = config;
  const login = (name: string, password: LoginArgs["password"]): LoginArgs => ({
    name,
    password,
    isImported: importRoles === "yes" || importRoles.split(",").includes(name),
  });
  return {
    host,
    image: imageReferenceOf(config, "postgres"),
    version: config.postgresVersion,
    memoryMiB: config.memory.postgres,
    password: config.postgresPassword,
    certificate: certificates.postgres,
    authority: certificates.authority,
    reachedAt: { ...at, isNamed: postgresNames(config).includes(at.host) },
    logins: {
      gateway: login(gatewayRoleName(config), config.gatewayPassword),
      supervisor: login("supervisor", config.supervisorPassword),
      backup: login("backup", config.backupPassword),
    },
  };
}

export function redisArgs({
  config,
  hosts,
  certificates,
}: Blueprint): RedisServerArgs {
  return {
    host: hosts[config.placement.redis],
    image: imageReferenceOf(config, "redis"),
    memoryMiB: config.memory.redis,
    password: config.redisPassword,
    previousPassword: config.redisPasswordPrevious,
    certificate: certificates.redis,
    authority: certificates.authority,
  };
}

export function couchArgs({ config, hosts }: Blueprint): CouchServerArgs {
  return {
    host: hosts[config.placement.notes],
    image: imageReferenceOf(config, "couchdb"),
    uuid: config.notesUuid,
    cookieSecret: config.notesCookieSecret,
    adminPassword: config.notesAdminPassword,
    data: config.notesData,
    openFiles: config.notesOpenFiles,
  };
}

/** The servers that gateways and supervisors log in to. */
interface Stores {
  readonly postgres: PostgresServer;
  readonly redis: RedisServer;
}

export function gatewayArgs(
  { config, hosts, certificates, images }: Blueprint,
  name: HostName,
  { postgres, redis }: Stores,
): GatewayArgs {
  const host = hosts[name];
  const { masterKeyPrevious, localRunnerA, localRunnerB } = config;
  return {
    host,
    image: images.gateway,
    memoryMiB: config.memory.gateway,
    database: postgres.loginFrom(host, "gateway"),
    redis: redis.connectionFrom(host),
    authority: certificates.authority,
    masterKey: config.masterKey,
    previousMasterKey:
      masterKeyPrevious === undefined
        ? undefined
        : { key: masterKeyPrevious, until: config.masterKeyPreviousUntil },
    saltKey: config.saltKey,
    providerKeys: config.providerKeys,
    localRunners: {
      ...(localRunnerA === undefined
        ? {}
        : { LOCAL_RUNNER_A_URL: localRunnerA }),
      ...(localRunnerB === undefined
        ? {}
        : { LOCAL_RUNNER_B_URL: localRunnerB }),
    },
    consoleUrl: supervisorAddresses(config, name)[0],
    settings: host.subnets.apply((subnets) =>
      readGatewaySettings(config, {
        drain_timeout: config.drainTimeout,
        // The two edges: the local one and the TLS endpoint share the gateway's network.
        trusted_proxies: [...subnets, hosts[otherHost(name)].address],
      }),
    ),
    drainNoticeSeconds: config.drainNotice,
    drainSeconds: config.drainTimeout,
  };
}

export function socketProxyArgs(
  { config, hosts }: Blueprint,
  name: HostName,
): SocketProxyArgs {
  return { host: hosts[name], image: imageReferenceOf(config, "haproxy") };
}

export function tlsEndpointArgs(
  { config, hosts, certificates }: Blueprint,
  name: HostName,
): TlsEndpointArgs {
  return {
    host: hosts[name],
    peer: hosts[otherHost(name)],
    image: imageReferenceOf(config, "caddy"),
    certificate: certificates.tls[name],
    hasNotes: config.placement.notes === name,
  };
}

export function edgeArgs(
  { config, hosts, certificates }: Blueprint,
  name: HostName,
  upstreams: EdgeArgs["upstreams"],
): EdgeArgs {
  return {
    host: hosts[name],
    peer: hosts[otherHost(name)],
    image: imageReferenceOf(config, "caddy"),
    hasNotes: config.placement.notes === name,
    https: config.edge,
    certificate: config.edgeCertificate,
    key: config.edgeKey,
    authority: certificates.authority,
    upstreams,
  };
}

export function supervisorArgs(
  { config, hosts, certificates, images }: Blueprint,
  name: HostName,
  { postgres, redis }: Stores,
  watches: SupervisorArgs["watches"],
): SupervisorArgs {
  const host = hosts[name];
  const peer = hosts[otherHost(name)];
  const { placement, edge, supervisorConfig } = config;
  const hasJobs = placement.postgres === name;
  const certified = edge.hostname ?? edge.notesHostname;
  return {
    host,
    peer,
    image: images.supervisor,
    memoryMiB: config.memory.supervisor,
    hasJobs,
    services: servicesOn(config, name),
    database: postgres.loginFrom(host, "supervisor"),
    backupDatabase: postgres.loginFrom(host, "backup"),
    redis: redis.connectionFrom(host),
    notesUrl:
      placement.notes === name
        ? `http://notes:${ports.notes}`
        : tlsUrl(peer, "notesTls"),
    // The edge's own internal certificate is trusted by no program here, and renewed automatically.
    edgeUrl:
      certified === undefined || edge.tls === "internal"
        ? undefined
        : httpsUrl(config, certified),
    authority: certificates.authority,
    certificates: allCertificates(certificates),
    masterKey: config.masterKey,
    notesAdminPassword: config.notesAdminPassword,
    operatorPassword: config.operatorPassword,
    alertSecrets: config.alertSecrets,
    config:
      supervisorConfig === undefined
        ? undefined
        : readNamedFile("hearth:supervisorConfig", supervisorConfig),
    backups: config.backupDirectory,
    // Only on the host that runs the jobs: the other does not need the key of all backups.
    offsite: hasJobs ? offsiteArgs(config) : undefined,
    publicUrls: {
      gateway: gatewayAddresses(config)[0] ?? "",
      notes: notesAddresses(config)[0] ?? "",
      supervisor: supervisorAddresses(config, name)[0] ?? "",
    },
    watches,
  };
}

/** Named as in the supervisor. */
function servicesOn(
  { placement }: Pick<ProgramConfig, "placement">,
  host: HostName,
): readonly string[] {
  const stores = (["notes", "postgres", "redis"] as const).filter(
    (store) => placement[store] === host,
  );
  return ["edge", "gateway", ...stores, "tls"];
}

function offsiteArgs({
  offsiteTarget: target,
  offsiteIdentity: identity,
  offsiteRcloneConfig: rcloneConfig,
}: ProgramConfig): OffsiteArgs | undefined {
  return target === undefined ||
    identity === undefined ||
    rcloneConfig === undefined
    ? undefined
    : { target, identity, rcloneConfig };
}
