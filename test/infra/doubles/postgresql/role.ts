import pg from "pg";
import type { ResourceDouble, Values } from "../protocol.ts";
import { recordedDiff } from "../recorded.ts";

export interface Login {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly ssl?: pg.ClientConfig["ssl"];
}

/** postgresql.Role: other.json, "postgresql.Role", and lifecycle.json, areas "role", "destroy" and "up". */
export function roleDouble(login: Login): ResourceDouble {
  return {
    deleteBeforeReplace: false,
    diff: recordedDiff("Role", {
      name: "update",
      password: "update",
      connectionLimit: "update",
    }),
    async create(inputs) {
      const name = String(inputs.name);
      await connected(login, async (client) => {
        try {
          await client.query(
            `CREATE ROLE ${quoted(name)} ${optionsOf(inputs)}`,
          );
        } catch (error) {
          const { message, code } = error as Error & { code?: string };
          // lifecycle.json, "role exists, not in state".
          throw new Error(`error creating role ${name}: ${message} (${code})`);
        }
        await grant(client, name, inputs);
      });
      return { id: name, state: inputs };
    },
    read: (id, state) =>
      connected(login, async (client) => {
        const { rows } = await client.query<Found>(READ_ROLE, [id]);
        const [found] = rows;
        if (found === undefined) {
          return null;
        }
        return {
          name: id,
          login: found.login,
          // "import: diff +password"; "SCRAM verifier, altered by hand: noticed"; a clear one is not.
          ...(state.password === undefined
            ? {}
            : {
                password: String(state.password).startsWith("SCRAM-SHA-256$")
                  ? found.password
                  : state.password,
              }),
          ...(found.roles.length > 0 ? { roles: found.roles } : {}),
          ...(found.assumeRole === null
            ? {}
            : { assumeRole: found.assumeRole }),
          ...(found.createDatabase ? { createDatabase: true } : {}),
          ...(found.connectionLimit === -1
            ? {}
            : { connectionLimit: found.connectionLimit }),
        };
      }),
    async update(id, _state, inputs) {
      const name = String(inputs.name);
      await connected(login, async (client) => {
        if (id !== name) {
          await client.query(
            `ALTER ROLE ${quoted(id)} RENAME TO ${quoted(name)}`,
          );
        }
        await client.query(`ALTER ROLE ${quoted(name)} ${optionsOf(inputs)}`);
        await grant(client, name, inputs);
      });
      return inputs;
    },
    delete: (id) =>
      connected(login, async (client) => {
        // REASSIGN runs in the provider's database only: lifecycle.json, "login role owns a table".
        await client.query(`REASSIGN OWNED BY ${quoted(id)} TO CURRENT_USER`);
        try {
          await client.query(`DROP ROLE ${quoted(id)}`);
        } catch (error) {
          const { message, code } = error as Error & { code?: string };
          throw new Error(`${message} (${code})`);
        }
      }),
  };
}

interface Found {
  readonly login: boolean;
  readonly password: string | null;
  readonly roles: readonly string[];
  readonly assumeRole: string | null;
  readonly createDatabase: boolean;
  readonly connectionLimit: number;
}

const READ_ROLE = `
  SELECT r.rolcanlogin AS login, r.rolpassword AS password, r.rolcreatedb AS "createDatabase",
    r.rolconnlimit AS "connectionLimit",
    array(SELECT g.rolname::text FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid
      WHERE m.member = r.oid ORDER BY 1) AS roles,
    (SELECT substr(setting, 6) FROM pg_db_role_setting s, unnest(s.setconfig) AS setting
      WHERE s.setrole = r.oid AND s.setdatabase = 0 AND setting LIKE 'role=%') AS "assumeRole"
  FROM pg_authid r WHERE r.rolname = $1`;

async function grant(
  client: pg.Client,
  name: string,
  inputs: Values,
): Promise<void> {
  for (const group of (inputs.roles ?? []) as readonly string[]) {
    await client.query(`GRANT ${quoted(group)} TO ${quoted(name)}`);
  }
  await client.query(
    inputs.assumeRole === undefined
      ? `ALTER ROLE ${quoted(name)} RESET ROLE`
      : `ALTER ROLE ${quoted(name)} SET ROLE ${quoted(String(inputs.assumeRole))}`,
  );
}

function optionsOf(inputs: Values): string {
  return [
    inputs.login === true ? "LOGIN" : "NOLOGIN",
    inputs.createDatabase === true ? "CREATEDB" : "NOCREATEDB",
    `CONNECTION LIMIT ${Number(inputs.connectionLimit ?? -1)}`,
    ...(inputs.password === undefined
      ? []
      : [`PASSWORD '${String(inputs.password).replaceAll("'", "''")}'`]),
  ].join(" ");
}

async function connected<T>(
  login: Login,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ ssl: false, ...login });
  try {
    // Once and never again, as the plugin does.
    await client.connect();
  } catch (error) {
    const { message, code } = error as Error & { code?: string };
    throw new Error(
      `error connecting to PostgreSQL server ${login.host} (scheme: postgres): ${
        code === "ECONNREFUSED"
          ? `dial tcp ${login.host}:${login.port}: connect: connection refused`
          : message
      }`,
    );
  }
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
