import pg from "pg";
import type { Row } from "../database/rows.ts";

/** A LiteLLM database that cannot be read; the message is for the operator. */
export class SourceRefused extends Error {}

/** The tables of a LiteLLM proxy that hold people, keys, budgets, models, settings and spend. Names are those of its Prisma schema. */
export const TABLES = {
  budgets: "LiteLLM_BudgetTable",
  organizations: "LiteLLM_OrganizationTable",
  organizationMembers: "LiteLLM_OrganizationMembership",
  users: "LiteLLM_UserTable",
  teams: "LiteLLM_TeamTable",
  teamMembers: "LiteLLM_TeamMembership",
  modelAliases: "LiteLLM_ModelTable",
  endUsers: "LiteLLM_EndUserTable",
  tags: "LiteLLM_TagTable",
  keys: "LiteLLM_VerificationToken",
  replacedKeys: "LiteLLM_DeprecatedVerificationToken",
  models: "LiteLLM_ProxyModelTable",
  credentials: "LiteLLM_CredentialsTable",
  logs: "LiteLLM_SpendLogs",
  settings: "LiteLLM_Config",
  guardrails: "LiteLLM_GuardrailsTable",
  accessGroups: "LiteLLM_AccessGroupTable",
  projects: "LiteLLM_ProjectTable",
  policies: "LiteLLM_PolicyTable",
  tokenKeys: "LiteLLM_JWTKeyMapping",
  agents: "LiteLLM_AgentsTable",
  mcpServers: "LiteLLM_MCPServerTable",
  prompts: "LiteLLM_PromptTable",
  vectorStores: "LiteLLM_ManagedVectorStoresTable",
} as const;

export type SourceTable = keyof typeof TABLES;

/** A LiteLLM database, read only. */
export interface Source {
  /** All rows of a table; none where this LiteLLM has no such table yet. */
  rows(table: SourceTable): Promise<readonly Row[]>;
  count(table: SourceTable): Promise<number>;
  /** The next rows of the spend log, oldest first, after the one named. */
  logsAfter(last: LogPlace | null, most: number): Promise<readonly Row[]>;
  close(): Promise<void>;
}

export interface LogPlace {
  readonly startTime: unknown;
  readonly requestId: unknown;
}

const STATEMENT_TIMEOUT_MS = 600_000;

/** Prisma's `timestamp` has no zone and means UTC; the driver would take it for local time. */
const types = {
  getTypeParser(oid: number, format?: "text" | "binary"): unknown {
    if (oid === pg.types.builtins.TIMESTAMP) {
      return (text: string) => new Date(`${text.replace(" ", "T")}Z`);
    }
    return pg.types.getTypeParser(oid, format ?? "text");
  },
};

/** Opens it for reading; throws {@link SourceRefused} when it cannot be reached or is not LiteLLM's. */
export async function openSource(url: string): Promise<Source> {
  const client = new pg.Client({
    connectionString: withoutPrismaParameters(url),
    connectionTimeoutMillis: 10_000,
    application_name: "hearth-import",
    types: types as pg.CustomTypesConfig,
  });
  client.on("error", () => undefined);
  try {
    await client.connect();
  } catch (error) {
    throw new SourceRefused(
      `LiteLLM's database cannot be reached (${(error as Error).message}): check LITELLM_DATABASE_URL.`,
    );
  }
  const found = await readOnly(
    client,
    "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() AND table_name LIKE 'LiteLLM%'",
  );
  const there = new Set(found.map(({ table_name: name }) => name));
  if (!there.has(TABLES.keys)) {
    await client.end();
    throw new SourceRefused(
      `the database of LITELLM_DATABASE_URL has no table "${TABLES.keys}": use the database of a LiteLLM proxy.`,
    );
  }
  const read = async (table: SourceTable, what: string, rest = "") =>
    there.has(TABLES[table])
      ? readOnly(client, `SELECT ${what} FROM "${TABLES[table]}" ${rest}`)
      : [];
  return {
    rows: (table) => read(table, "*"),
    async count(table) {
      const [row] = await read(table, "count(*) AS count");
      return Number(row?.["count"] ?? 0);
    },
    async logsAfter(last, most) {
      if (!there.has(TABLES.logs)) {
        return [];
      }
      const after =
        last === null ? "" : `WHERE ("startTime", request_id) > ($1, $2)`;
      return readOnly(
        client,
        // The text form keeps the microseconds that a Date would lose.
        `SELECT *, "startTime"::text AS place FROM "${TABLES.logs}" ${after} ORDER BY "startTime", request_id LIMIT ${most}`,
        last === null ? [] : [last.startTime, last.requestId],
      );
    },
    close: () => client.end(),
  };
}

/** In a transaction of its own: a setting of the session would stay on a connection that a pooler gives to LiteLLM next. */
async function readOnly(
  client: pg.Client,
  text: string,
  values: readonly unknown[] = [],
): Promise<readonly Row[]> {
  await client.query(
    `BEGIN READ ONLY; SET LOCAL statement_timeout = ${STATEMENT_TIMEOUT_MS}`,
  );
  const { rows } = await client.query<Row>(text, [...values]);
  await client.query("COMMIT");
  return rows;
}

/** Prisma's own parameters (`connection_limit`, `pool_timeout`, `pgbouncer`) mean nothing to Postgres; its `schema` does. */
function withoutPrismaParameters(text: string): string {
  if (!URL.canParse(text)) {
    throw new SourceRefused(
      "LITELLM_DATABASE_URL is not an address: use postgresql://user:password@host:5432/database.",
    );
  }
  const url = new URL(text);
  if (!/^postgres(ql)?:$/.test(url.protocol)) {
    throw new SourceRefused(
      "LITELLM_DATABASE_URL must start with postgresql://: LiteLLM keeps its keys in Postgres.",
    );
  }
  const schema = url.searchParams.get("schema");
  const ssl = url.searchParams.get("sslmode");
  url.search = "";
  if (ssl !== null) {
    url.searchParams.set("sslmode", ssl);
  }
  if (schema !== null) {
    url.searchParams.set(
      "options",
      `-c search_path="${schema.replaceAll('"', "")}"`,
    );
  }
  return url.href;
}
