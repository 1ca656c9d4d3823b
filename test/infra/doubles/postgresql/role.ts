import pg from "pg";
import { equal, type ResourceDouble, type Values } from "../protocol.ts";

export interface Login {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

/** postgresql.Role: other.json, "postgresql.Role", and lifecycle.json, areas "role", "destroy" and "up". */
export function roleDouble(login: Login): ResourceDouble {
  return {
    deleteBeforeReplace: false,
    // "role name changed: update"; password, connectionLimit: in place.
    diff: (state, inputs) => ({
      replaces: [],
      updates: properties.filter(
        (name) => !equal(state[name] ?? null, inputs[name] ?? null),
      ),
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
        const { rows } = await client.query<{
          rolpassword: string | null;
          rolcanlogin: boolean;
        }>(
          "SELECT rolpassword, rolcanlogin FROM pg_authid WHERE rolname = $1",
          [id],
        );
        const [found] = rows;
        if (found === undefined) return null;
        // "password SCRAM verifier, altered by hand: noticed"; a clear one is not.
        return String(state.password).startsWith("SCRAM-SHA-256$")
          ? { ...state, password: found.rolpassword }
          : state;
      }),
    async update(id, _state, inputs) {
      const name = String(inputs.name);
      await connected(login, async (client) => {
        if (id !== name)
          await client.query(
            `ALTER ROLE ${quoted(id)} RENAME TO ${quoted(name)}`,
          );
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

const properties = [
  "name",
  "login",
  "password",
  "roles",
  "assumeRole",
  "createDatabase",
  "connectionLimit",
];

async function grant(
  client: pg.Client,
  name: string,
  inputs: Values,
): Promise<void> {
  for (const group of (inputs.roles ?? []) as readonly string[])
    await client.query(`GRANT ${quoted(group)} TO ${quoted(name)}`);
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
  const client = new pg.Client({ ...login, ssl: false });
  try {
    // Once and never again, as the plugin does.
    await client.connect();
  } catch (error) {
    throw new Error(
      `error connecting to PostgreSQL server ${login.host} (scheme: postgres): ${(error as Error).message}`,
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
