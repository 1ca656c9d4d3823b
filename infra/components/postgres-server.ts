import { readFileSync } from "node:fs";
import type * as docker from "@pulumi/docker";
import * as postgresql from "@pulumi/postgresql";
import * as pulumi from "@pulumi/pulumi";
import {
  postgresNames,
  serverFile,
  serverUploads,
  type Certificates,
} from "../certificates.ts";
import { imageReferenceOf, type HearthConfig } from "../config.ts";
import type { ContainerSpec } from "../container.ts";
import { clearWay, networkName, ports, type Host } from "../hosts.ts";
import { removeLeftoverRole } from "../leftover.ts";
import { scramVerifier } from "../scram.ts";
import {
  keepVolume,
  placeContainer,
  pullImage,
  secretFiles,
} from "./placed.ts";

/** The database with its owner roles and login roles. */
export class PostgresServer extends pulumi.ComponentResource {
  readonly container: docker.Container;
  /** The gateways' login role: they depend on it. */
  readonly gatewayRole: postgresql.Role;
  readonly supervisorRole: postgresql.Role;
  readonly backupRole: postgresql.Role;

  constructor(
    name: string,
    config: HearthConfig,
    certificates: Certificates,
    host: Host,
  ) {
    super("hearth:data:PostgresServer", name);
    const volume = keepVolume(`${name}-data`, volumeName, host, this);
    const image = pullImage(
      `${name}-image`,
      imageReferenceOf(config, "postgres"),
      host,
      this,
    );
    const spec = buildPostgresArgs(config, certificates, host);
    // The password acts at initdb only. Its rotation is an ALTER ROLE over the container's socket and must not replace the
    // server; a container made for another reason carries the new one.
    const passwordAt = spec.files.findIndex(({ path }) =>
      path.endsWith("/POSTGRES_PASSWORD"),
    );
    this.container = placeContainer(name, spec, image.imageId, host, {
      parent: this,
      dependsOn: [volume],
      ignoreChanges: [`uploads[${passwordAt}].content`],
    });
    const at = config.postgresAt?.host ?? host.address;
    const { certificate: cert, key } = certificates.postgres;
    const provider = new postgresql.Provider(
      `${name}-login`,
      {
        // Plain strings: an output of the container would make the provider, and the roles with it, depend on its replacement.
        host: at,
        port: config.postgresAt?.port ?? ports.postgres,
        username: "postgres",
        password: pulumi.secret(config.postgresPassword),
        // Another name than the server's own is an operator's forwarding, which no certificate can know.
        sslmode: postgresNames(config).includes(at)
          ? "verify-full"
          : "verify-ca",
        // As a text, not a file of one operator's machine: the plugin reads it so only beside a client's certificate, for which
        // the server does not ask.
        sslrootcert: certificates.authority,
        clientcert: { cert, key: pulumi.secret(key), sslinline: true },
        expectedVersion: config.postgresVersion,
        // What a dropped role owned is reassigned in this database only.
        database: "hearth",
        superuser: true,
      },
      // It pings once and never again: the container's `wait` is what it waits for.
      { parent: this, dependsOn: [this.container] },
    );
    const clearRole = clearWay("clear-role", (role) =>
      removeLeftoverRole(host.engine, role),
    );
    const roles = Object.fromEntries(
      buildRoles(config).map((role) => [
        role.kind,
        // Named like the role: with gateway_b in gateway_a's place the engine makes b, replaces both gateways, and drops a last.
        // One resource for both would rename the role under the sessions that use it.
        new postgresql.Role(`${name}-${String(role.args.name)}`, role.args, {
          parent: this,
          provider,
          dependsOn: [this.container],
          hooks: { beforeCreate: [clearRole] },
          additionalSecretOutputs: ["password"],
          // Adopts roles of a server whose state was lost; harmless for those in state, refused for those that are not there.
          ...(isImported(config, String(role.args.name))
            ? { import: String(role.args.name) }
            : {}),
        }),
      ]),
    ) as Record<"gateway" | "supervisor" | "backup", postgresql.Role>;
    this.gatewayRole = roles.gateway;
    this.supervisorRole = roles.supervisor;
    this.backupRole = roles.backup;
    this.registerOutputs({});
  }
}

const volumeName = "hearth-postgres";

/** The role the gateways log in as. The letter is no host: the other one exists only while the password is rotated. */
export function gatewayRoleName(config: HearthConfig): string {
  return `gateway_${config.gatewayRole}`;
}

function isImported({ importRoles }: HearthConfig, role: string): boolean {
  return importRoles === "yes" || importRoles.split(",").includes(role);
}

const ownKey = "/run/hearth/postgres-own.key";
const accessFile = "/run/hearth/pg_hba.conf";

export function buildPostgresArgs(
  config: HearthConfig,
  certificates: Certificates,
  host: Host,
): ContainerSpec {
  const secrets = secretFiles(
    { POSTGRES_PASSWORD: config.postgresPassword },
    // The official entrypoint reads it as root before it steps down.
    "0400",
  );
  return {
    name: "hearth-postgres",
    command: [
      "bash",
      "-c",
      // Uploads are root's, and the server wants its key for itself.
      `install -m 0400 -o postgres ${serverFile("postgres", "key")} ${ownKey} && exec docker-entrypoint.sh "$@"`,
      "bash",
      "postgres",
      "-c",
      `shared_buffers=${Math.floor(config.memory.postgres / 4)}MB`,
      "-c",
      "max_connections=100",
      // A statement that fails is not written to the log: those about roles carry verifiers.
      "-c",
      "log_min_error_statement=panic",
      "-c",
      "ssl=on",
      "-c",
      `ssl_cert_file=${serverFile("postgres", "crt")}`,
      "-c",
      `ssl_key_file=${ownKey}`,
      "-c",
      `hba_file=${accessFile}`,
    ],
    environment: { POSTGRES_DB: "hearth", ...secrets.environment },
    files: [
      ...secrets.files,
      {
        path: "/docker-entrypoint-initdb.d/10-hearth-roles.sql",
        content: readFileSync(
          new URL("../../config/postgres-roles.sql", import.meta.url),
          "utf8",
        ),
        permissions: "0444",
      },
      {
        path: accessFile,
        content: `# Commands within the container come by its socket; everything else speaks TLS.
local all all trust
hostssl all all all scram-sha-256
`,
        permissions: "0444",
      },
      ...serverUploads("postgres", certificates.postgres, "0400"),
    ],
    ports: [{ address: host.address, port: ports.postgres }],
    // 18's layout: PGDATA is a directory of the version below it.
    volumes: [{ source: volumeName, path: "/var/lib/postgresql" }],
    networks: [{ name: networkName, aliases: ["postgres"] }],
    memoryMiB: config.memory.postgres,
    sharedMemoryMiB: 256,
    // For the root entrypoint, which gives the volume to postgres and becomes it.
    capabilities: [
      "CAP_CHOWN",
      "CAP_DAC_OVERRIDE",
      "CAP_FOWNER",
      "CAP_SETGID",
      "CAP_SETUID",
    ],
    health: {
      // By TCP: during initdb only the socket listens, and a server for the scripts alone answers there.
      test: ["CMD", "pg_isready", "-q", "-h", "127.0.0.1", "-U", "postgres"],
      interval: "10s",
      timeout: "5s",
      startPeriod: "30s",
      retries: 5,
    },
    graceSeconds: 60,
  };
}

/**
 * The login roles. They own nothing and are granted nothing of their own: what they may do comes from the groups that initdb
 * made, so they can be dropped and made again. No Grant and no DefaultPrivileges resources: many at once fail with
 * "tuple concurrently updated", and they keep `destroy` from dropping the role (2BP01).
 */
export function buildRoles(config: HearthConfig): readonly {
  readonly kind: "gateway" | "supervisor" | "backup";
  readonly args: postgresql.RoleArgs;
}[] {
  const login = (name: string, password: string) => ({
    name,
    login: true,
    password: pulumi.secret(scramVerifier(name, password)),
  });
  return [
    {
      kind: "gateway",
      args: {
        ...login(gatewayRoleName(config), config.gatewayPassword),
        roles: ["hearth_owner"],
        assumeRole: "hearth_owner",
      },
    },
    {
      kind: "supervisor",
      args: {
        ...login("supervisor", config.supervisorPassword),
        roles: ["hearth_reports"],
      },
    },
    {
      kind: "backup",
      args: {
        ...login("backup", config.backupPassword),
        roles: ["hearth_reader"],
        // Restore drills go into a database of their own.
        createDatabase: true,
      },
    },
  ];
}
