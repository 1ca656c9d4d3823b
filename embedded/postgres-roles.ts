import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { Failure, codeOf, textOf } from "../core/failure.ts";
import { projectRoot } from "../supervisor/home/home.ts";
import { scramVerifier } from "../core/scram.ts";
import type { Secrets } from "../supervisor/home/secrets.ts";

interface LoginRole {
  readonly name: "gateway_a" | "gateway_b" | "supervisor" | "backup";
  readonly memberOf: "hearth_owner" | "hearth_reader" | "hearth_reports";
  readonly createdb: boolean;
  readonly actsAs?: "hearth_owner";
  readonly password: (secrets: Secrets) => string;
}

const loginRoles = ({
  gatewayDbRole = "gateway_a",
}: Secrets): readonly LoginRole[] => [
  {
    name: gatewayDbRole,
    memberOf: "hearth_owner",
    createdb: false,
    actsAs: "hearth_owner",
    password: (secrets) => secrets.gatewayDbPassword,
  },
  {
    name: "supervisor",
    memberOf: "hearth_reports",
    createdb: false,
    password: (secrets) => secrets.supervisorDbPassword,
  },
  {
    name: "backup",
    memberOf: "hearth_reader",
    createdb: true,
    password: (secrets) => secrets.backupDbPassword,
  },
];

const CONNECT_WITHIN_MS = 5000;
const STATEMENT_WITHIN_MS = 30_000;

/**
 * Creates the database "hearth", the owning roles (config/postgres-roles.sql) and the login roles if they are missing, and
 * sets the passwords of secrets.json. Does nothing if all is in place.
 */
export async function ensureRoles(
  port: number,
  secrets: Secrets,
): Promise<void> {
  const client = await connect(port, "postgres", secrets);
  try {
    const { rowCount } = await client.query(
      "SELECT 1 FROM pg_database WHERE datname = 'hearth'",
    );
    if (rowCount === 0) {
      await client.query("CREATE DATABASE hearth");
    }
    const { rows } = await client.query<{
      rolname: string;
      rolpassword: string | null;
    }>("SELECT rolname, rolpassword FROM pg_authid");
    const verifiers = new Map(
      rows.map((row) => [row.rolname, row.rolpassword]),
    );
    if (!verifiers.has("hearth_owner")) {
      await makeOwningRoles(port, secrets);
    }
    for (const role of loginRoles(secrets)) {
      if (!verifiers.has(role.name)) {
        await client.query(createRole(role));
      }
      const verifier = scramVerifier(role.name, role.password(secrets));
      if (verifiers.get(role.name) !== verifier) {
        await client.query(`ALTER ROLE ${role.name} PASSWORD '${verifier}'`);
      }
    }
  } finally {
    await client.end();
  }
}

/** One simple query of many statements is one transaction: the whole file applies or nothing. */
async function makeOwningRoles(port: number, secrets: Secrets): Promise<void> {
  const client = await connect(port, "hearth", secrets);
  try {
    await client.query(
      readFileSync(join(projectRoot, "config", "postgres-roles.sql"), "utf8"),
    );
  } finally {
    await client.end();
  }
}

/**
 * Creates the gateway's login role for after a rotation, or enables the one of the previous rotation again. Throws Postgres's
 * errors.
 */
export async function admitGatewayRole(
  port: number,
  secrets: Secrets,
  next: Pick<Secrets, "gatewayDbRole" | "gatewayDbPassword">,
): Promise<void> {
  const [role] = loginRoles({ ...secrets, ...next });
  if (role === undefined) {
    return;
  }
  await asSuperuser(port, secrets, async (client) => {
    const { rowCount } = await client.query(
      "SELECT 1 FROM pg_roles WHERE rolname = $1",
      [role.name],
    );
    if (rowCount === 0) {
      await client.query(createRole(role));
    }
    const verifier = scramVerifier(role.name, next.gatewayDbPassword);
    await client.query(`ALTER ROLE ${role.name} LOGIN PASSWORD '${verifier}'`);
  });
}

/** Disables logins of a role; open sessions continue, and the role owns nothing. */
export function shutOut(
  port: number,
  secrets: Secrets,
  role: "gateway_a" | "gateway_b",
): Promise<void> {
  return asSuperuser(port, secrets, async (client) => {
    await client.query(`ALTER ROLE ${role} NOLOGIN PASSWORD NULL`);
  });
}

/** Whether the superuser's password in these secrets is correct. */
export async function opensPostgres(
  port: number,
  secrets: Secrets,
): Promise<boolean> {
  try {
    await asSuperuser(port, secrets, async () => undefined);
    return true;
  } catch (error) {
    if (error instanceof WrongPassword) {
      return false;
    }
    throw error;
  }
}

/** Sets a role's password, effective immediately. */
export function setPassword(
  port: number,
  secrets: Secrets,
  role: "supervisor" | "backup" | "postgres",
  password: string,
): Promise<void> {
  return asSuperuser(port, secrets, async (client) => {
    const verifier = scramVerifier(role, password);
    await client.query(`ALTER ROLE ${role} PASSWORD '${verifier}'`);
  });
}

async function asSuperuser(
  port: number,
  secrets: Secrets,
  work: (client: Client) => Promise<void>,
): Promise<void> {
  const client = await connect(port, "postgres", secrets);
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

function createRole({ name, memberOf, createdb, actsAs }: LoginRole): string {
  const create = `CREATE ROLE ${name} LOGIN ${createdb ? "CREATEDB" : ""} IN ROLE ${memberOf}`;
  return actsAs === undefined
    ? create
    : `${create}; ALTER ROLE ${name} SET role = '${actsAs}'`;
}

async function connect(
  port: number,
  database: string,
  secrets: Secrets,
): Promise<Client> {
  const client = new Client({
    host: "127.0.0.1",
    port,
    database,
    user: "postgres",
    password: secrets.postgresPassword,
    connectionTimeoutMillis: CONNECT_WITHIN_MS,
    query_timeout: STATEMENT_WITHIN_MS,
    application_name: "hearth up",
  });
  client.on("error", () => {});
  try {
    await client.connect();
    return client;
  } catch (error) {
    throw passwordHint(error);
  }
}

/** Postgres answers but has another password. */
class WrongPassword extends Failure {}

/** A rejected password means that files of different installations are mixed; waiting does not help. */
export function passwordHint(
  error: unknown,
  data = "the data directory",
): unknown {
  if (codeOf(error) !== "28P01") {
    return error;
  }
  return new WrongPassword(
    `Postgres does not accept the password in secrets.json (${textOf(error)}): ${data} and secrets.json come from different installations. Restore those that belong together, or start with a new home (HEARTH_HOME).`,
  );
}
