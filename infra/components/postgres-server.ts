import { readFileSync } from "node:fs";
import type * as docker from "@pulumi/docker";
import * as postgresql from "@pulumi/postgresql";
import * as pulumi from "@pulumi/pulumi";
import {
  authorityFile,
  serverFile,
  serverUploads,
  type ServerCertificate,
} from "../certificates.ts";
import type { HearthConfig } from "../config/config-schema.ts";
import type { ContainerSpec, UploadedFile } from "../container.ts";
import { clearWay, reach, type Host, publishedPorts } from "../hosts.ts";
import { containerName, networkName, volumeName } from "../names.ts";
import { removeLeftoverRole } from "../leftover.ts";
import { scramVerifier } from "../../core/scram.ts";
import {
  keepVolume,
  placeContainer,
  pullImage,
  secretFiles,
} from "./placed.ts";

export interface PostgresServerArgs {
  /** Where it runs. */
  readonly host: Host;
  /** Reference of the image. */
  readonly image: string;
  /** Major version of that image, such as "18": the provider's queries depend on it. */
  readonly version: string;
  readonly memoryMiB: number;
  /** The superuser's. Only used by initdb; rotated in the running server. */
  readonly password: pulumi.Input<string>;
  /** For the host's address, issued by the stack's authority. */
  readonly certificate: ServerCertificate;
  /** PEM. */
  readonly authority: pulumi.Input<string>;
  /** Address of the server for this machine. */
  readonly reachedAt: {
    readonly host: string;
    readonly port: number;
    /** Whether the certificate is valid for that name; false for an address forwarded by the operator. */
    readonly isNamed: boolean;
  };
  readonly logins: Readonly<Record<LoginKind, LoginArgs>>;
}

/** A login role: it owns nothing and has no direct grants. */
export interface LoginArgs {
  readonly name: string;
  readonly password: pulumi.Input<string>;
  /** Whether it exists without being in the state, and is imported. */
  readonly isImported: boolean;
}

/** Gateways own the database's objects, supervisors read reports, backups read everything. */
type LoginKind = "gateway" | "supervisor" | "backup";

/** Login of a container. */
export interface DatabaseLogin {
  /** `postgresql://…`, with the password. */
  readonly url: pulumi.Output<string>;
  /** Created before its users. */
  readonly role: pulumi.Resource;
}

/** The database with its owner roles and login roles. */
export class PostgresServer extends pulumi.ComponentResource {
  readonly container: docker.Container;
  readonly roles: Readonly<Record<LoginKind, postgresql.Role>>;
  readonly #args: PostgresServerArgs;

  constructor(
    name: string,
    args: PostgresServerArgs,
    opts?: pulumi.ComponentResourceOptions,
  ) {
    super("hearth:data:PostgresServer", name, {}, opts);
    this.#args = args;
    const { host } = args;
    const volume = keepVolume(`${name}-data`, "postgres", args.host, this);
    const image = pullImage(`${name}-image`, args.image, host, this);
    const spec = buildPostgresArgs(args);
    // The password is only used by initdb. Its rotation is an ALTER ROLE over the container's socket and must not replace the
    // server; a container created for another reason starts with the new one.
    const passwordAt = spec.files.findIndex(({ path }) =>
      path.endsWith("/POSTGRES_PASSWORD"),
    );
    this.container = placeContainer(name, spec, image, host, {
      parent: this,
      dependsOn: [volume],
      ignoreChanges: [`uploads[${passwordAt}].content`],
    });
    const provider = new postgresql.Provider(
      `${name}-login`,
      buildProviderArgs(args),
      // It pings only once, so it relies on the container's `wait`.
      { parent: this, dependsOn: [this.container] },
    );
    const clearRole = clearWay("clear-role", (role) =>
      removeLeftoverRole(host.engine, role),
    );
    const makeRole = (kind: LoginKind) => {
      const login = args.logins[kind];
      // Named after the role: when gateway_b replaces gateway_a, the engine creates b, replaces both gateways, and drops a last.
      // One resource for both would rename the role while sessions use it.
      return new postgresql.Role(
        `${name}-${login.name}`,
        buildRoleArgs(kind, login),
        {
          parent: this,
          provider,
          dependsOn: [this.container],
          hooks: { beforeCreate: [clearRole] },
          additionalSecretOutputs: ["password"],
          // Imports roles after the state was lost; harmless for roles in the state, rejected for roles that do not exist.
          ...(login.isImported ? { import: login.name } : {}),
        },
      );
    };
    this.roles = {
      gateway: makeRole("gateway"),
      supervisor: makeRole("supervisor"),
      backup: makeRole("backup"),
    };
    this.registerOutputs({ container: this.container, roles: this.roles });
  }

  /** For containers on this host. */
  loginFrom(from: Host, kind: LoginKind): DatabaseLogin {
    const { name, password } = this.#args.logins[kind];
    const { host, port } = reach(from, this.#args.host, "postgres");
    return {
      url: pulumi.interpolate`postgresql://${name}:${password}@${host}:${port}/hearth?sslmode=verify-full&sslrootcert=${authorityFile}`,
      role: this.roles[kind],
    };
  }
}

/** The gateways' login role. The letter is not a host: the other role exists only during a rotation. */
export function gatewayRoleName({
  gatewayRole,
}: Pick<HearthConfig, "gatewayRole">): string {
  return `gateway_${gatewayRole}`;
}

const OWN_KEY = "/run/hearth/postgres-own.key";
const ACCESS_FILE = "/run/hearth/pg_hba.conf";

function buildPostgresArgs(args: PostgresServerArgs): ContainerSpec {
  const secrets = secretFiles(
    { POSTGRES_PASSWORD: args.password },
    // The official entrypoint reads it as root before it drops its privileges.
    "0400",
  );
  return {
    name: containerName(args.host.engine, "postgres"),
    command: buildCommand(args),
    environment: { POSTGRES_DB: "hearth", ...secrets.environment },
    files: [...secrets.files, ...buildFiles(args)],
    ports: publishedPorts(args.host, "postgres", [args.host.address]),
    // 18's layout: PGDATA is a directory of the version below it.
    volumes: [
      {
        source: volumeName(args.host.engine, "postgres"),
        path: "/var/lib/postgresql",
      },
    ],
    networks: [{ name: networkName(args.host.engine), aliases: ["postgres"] }],
    memoryMiB: args.memoryMiB,
    sharedMemoryMiB: 256,
    // For the root entrypoint, which changes the owner of the volume and switches to user postgres.
    capabilities: [
      "CAP_CHOWN",
      "CAP_DAC_OVERRIDE",
      "CAP_FOWNER",
      "CAP_SETGID",
      "CAP_SETUID",
    ],
    health: {
      // Over TCP: during initdb a temporary server listens on the socket only.
      test: ["CMD", "pg_isready", "-q", "-h", "127.0.0.1", "-U", "postgres"],
      interval: "10s",
      timeout: "5s",
      startPeriod: "30s",
      retries: 5,
    },
    graceSeconds: 60,
  };
}

function buildCommand({
  memoryMiB,
}: Pick<PostgresServerArgs, "memoryMiB">): readonly string[] {
  return [
    "bash",
    "-c",
    // Never creates an empty database next to the data of another major version. Uploads belong to root, but the
    // server must own its key.
    `if [ ! -s "$PGDATA/PG_VERSION" ] && compgen -G "/var/lib/postgresql/*/*/PG_VERSION"; then echo "the data is of another major version of Postgres: npm run deploy -- upgrade postgres"; exit 1; fi; install -m 0400 -o postgres ${serverFile("postgres", "key")} ${OWN_KEY} && exec docker-entrypoint.sh "$@"`,
    "bash",
    "postgres",
    "-c",
    `shared_buffers=${Math.floor(memoryMiB / 4)}MB`,
    "-c",
    "max_connections=100",
    // Failed statements are not logged: those about roles contain verifiers.
    "-c",
    "log_min_error_statement=panic",
    "-c",
    "ssl=on",
    "-c",
    `ssl_cert_file=${serverFile("postgres", "crt")}`,
    "-c",
    `ssl_key_file=${OWN_KEY}`,
    "-c",
    `hba_file=${ACCESS_FILE}`,
  ];
}

function buildFiles({
  certificate,
}: Pick<PostgresServerArgs, "certificate">): readonly UploadedFile[] {
  return [
    {
      path: "/docker-entrypoint-initdb.d/10-hearth-roles.sql",
      content: readFileSync(
        new URL("../../config/postgres-roles.sql", import.meta.url),
        "utf8",
      ),
      permissions: "0444",
    },
    {
      path: ACCESS_FILE,
      content: `# Commands within the container come by its socket; everything else speaks TLS.
local all all trust
hostssl all all all scram-sha-256
`,
      permissions: "0444",
    },
    ...serverUploads("postgres", certificate, "0400"),
  ];
}

function buildProviderArgs({
  password,
  authority,
  certificate: { certificate: cert, key },
  reachedAt: { host, port, isNamed },
  version,
}: PostgresServerArgs): postgresql.ProviderArgs {
  return {
    // Plain strings: with an output of the container, the provider and its roles would depend on its replacement.
    host,
    port,
    username: "postgres",
    password,
    sslmode: isNamed ? "verify-full" : "verify-ca",
    // As text, not as a file of one operator's machine: the plugin accepts text only together with a client certificate, which
    // the server does not require.
    sslrootcert: authority,
    clientcert: { cert, key, sslinline: true },
    expectedVersion: version,
    // Objects of a dropped role are reassigned in this database only.
    database: "hearth",
    superuser: true,
  };
}

/**
 * A login role gets its rights from the groups created by initdb, so it can be dropped and created again. No Grant and no
 * DefaultPrivileges resources: many at once fail with "tuple concurrently updated", and they keep `destroy` from dropping the
 * role (2BP01).
 */
function buildRoleArgs(
  kind: LoginKind,
  { name, password }: LoginArgs,
): postgresql.RoleArgs {
  const rights = {
    gateway: { roles: ["hearth_owner"], assumeRole: "hearth_owner" },
    supervisor: { roles: ["hearth_reports"] },
    // Restore drills use a separate database.
    backup: { roles: ["hearth_reader"], createDatabase: true },
  };
  return {
    name,
    login: true,
    password: pulumi
      .output(password)
      .apply((text) => scramVerifier(name, text)),
    ...rights[kind],
  };
}
