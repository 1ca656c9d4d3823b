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
import type { HearthConfig } from "../config/config.ts";
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
  /** Of that image, such as "18": what the provider may ask for depends on it. */
  readonly version: string;
  readonly memoryMiB: number;
  /** The superuser's. Acts at initdb; rotated in the running server. */
  readonly password: pulumi.Input<string>;
  /** For the host's address, of the stack's authority. */
  readonly certificate: ServerCertificate;
  /** PEM. */
  readonly authority: pulumi.Input<string>;
  /** How this machine reaches the server. */
  readonly reachedAt: {
    readonly host: string;
    readonly port: number;
    /** Whether the certificate holds for that name; an operator's forwarding no certificate can know. */
    readonly isNamed: boolean;
  };
  readonly logins: Readonly<Record<LoginKind, LoginArgs>>;
}

/** A login role: it owns nothing and is granted nothing of its own. */
export interface LoginArgs {
  readonly name: string;
  readonly password: pulumi.Input<string>;
  /** Whether it is there already, unknown to the state, and is taken over. */
  readonly isImported: boolean;
}

/** Gateways own what is in the database, supervisors read reports, backups read everything. */
export type LoginKind = "gateway" | "supervisor" | "backup";

/** What a container needs to log in. */
export interface DatabaseLogin {
  /** `postgresql://…`, with the password. */
  readonly url: pulumi.Output<string>;
  /** Made before who uses it. */
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
    // The password acts at initdb only. Its rotation is an ALTER ROLE over the container's socket and must not replace the
    // server; a container made for another reason carries the new one.
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
      // It pings once and never again: the container's `wait` is what it waits for.
      { parent: this, dependsOn: [this.container] },
    );
    const clearRole = clearWay("clear-role", (role) =>
      removeLeftoverRole(host.engine, role),
    );
    const makeRole = (kind: LoginKind) => {
      const login = args.logins[kind];
      // Named like the role: with gateway_b in gateway_a's place the engine makes b, replaces both gateways, and drops a last.
      // One resource for both would rename the role under the sessions that use it.
      return new postgresql.Role(
        `${name}-${login.name}`,
        buildRoleArgs(kind, login),
        {
          parent: this,
          provider,
          dependsOn: [this.container],
          hooks: { beforeCreate: [clearRole] },
          additionalSecretOutputs: ["password"],
          // Adopts roles of a server whose state was lost; harmless for those in state, refused for those that are not there.
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

/** The role the gateways log in as. The letter is no host: the other one exists only while the password is rotated. */
export function gatewayRoleName({
  gatewayRole,
}: Pick<HearthConfig, "gatewayRole">): string {
  return `gateway_${gatewayRole}`;
}

const OWN_KEY = "/run/hearth/postgres-own.key";
const ACCESS_FILE = "/run/hearth/pg_hba.conf";

export function buildPostgresArgs(args: PostgresServerArgs): ContainerSpec {
  const secrets = secretFiles(
    { POSTGRES_PASSWORD: args.password },
    // The official entrypoint reads it as root before it steps down.
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

function buildCommand({
  memoryMiB,
}: Pick<PostgresServerArgs, "memoryMiB">): readonly string[] {
  return [
    "bash",
    "-c",
    // Beside the data of another major version a new, empty database is never the answer. And uploads are root's, while the
    // server wants its key for itself.
    `if [ ! -s "$PGDATA/PG_VERSION" ] && compgen -G "/var/lib/postgresql/*/*/PG_VERSION"; then echo "the data is of another major version of Postgres: npm run deploy -- upgrade postgres"; exit 1; fi; install -m 0400 -o postgres ${serverFile("postgres", "key")} ${OWN_KEY} && exec docker-entrypoint.sh "$@"`,
    "bash",
    "postgres",
    "-c",
    `shared_buffers=${Math.floor(memoryMiB / 4)}MB`,
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
    // Plain strings: an output of the container would make the provider, and the roles with it, depend on its replacement.
    host,
    port,
    username: "postgres",
    password,
    sslmode: isNamed ? "verify-full" : "verify-ca",
    // As a text, not a file of one operator's machine: the plugin reads it so only beside a client's certificate, for which
    // the server does not ask.
    sslrootcert: authority,
    clientcert: { cert, key, sslinline: true },
    expectedVersion: version,
    // What a dropped role owned is reassigned in this database only.
    database: "hearth",
    superuser: true,
  };
}

/**
 * What a login role may do comes from the groups that initdb made, so it can be dropped and made again. No Grant and no
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
    // Restore drills go into a database of their own.
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
