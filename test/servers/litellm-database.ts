import { hash } from "node:crypto";
import pg from "pg";
import { query, type Pool } from "../../gateway/database/pool.ts";

/** The tables of a LiteLLM proxy that an import reads, as Prisma creates them from LiteLLM's public schema. */
const SCHEMA = `
CREATE TABLE "LiteLLM_BudgetTable" (
  budget_id text PRIMARY KEY, max_budget double precision, soft_budget double precision, max_parallel_requests integer,
  tpm_limit bigint, rpm_limit bigint, model_max_budget jsonb, budget_duration text, budget_reset_at timestamp(3),
  allowed_models text[] DEFAULT '{}', created_at timestamp(3) NOT NULL DEFAULT now(), created_by text NOT NULL DEFAULT '',
  updated_at timestamp(3) NOT NULL DEFAULT now(), updated_by text NOT NULL DEFAULT '');
CREATE TABLE "LiteLLM_OrganizationTable" (
  organization_id text PRIMARY KEY, organization_alias text NOT NULL, budget_id text NOT NULL REFERENCES "LiteLLM_BudgetTable",
  metadata jsonb NOT NULL DEFAULT '{}', models text[], spend double precision NOT NULL DEFAULT 0, model_spend jsonb NOT NULL DEFAULT '{}',
  object_permission_id text, created_at timestamp(3) NOT NULL DEFAULT now(), created_by text NOT NULL DEFAULT '',
  updated_at timestamp(3) NOT NULL DEFAULT now(), updated_by text NOT NULL DEFAULT '');
CREATE TABLE "LiteLLM_ModelTable" (
  id serial PRIMARY KEY, aliases jsonb, created_at timestamp(3) NOT NULL DEFAULT now(), created_by text NOT NULL DEFAULT '',
  updated_at timestamp(3) NOT NULL DEFAULT now(), updated_by text NOT NULL DEFAULT '');
CREATE TABLE "LiteLLM_TeamTable" (
  team_id text PRIMARY KEY, team_alias text, organization_id text, object_permission_id text, admins text[], members text[],
  members_with_roles jsonb NOT NULL DEFAULT '{}', metadata jsonb NOT NULL DEFAULT '{}', max_budget double precision,
  soft_budget double precision, spend double precision NOT NULL DEFAULT 0, models text[], max_parallel_requests integer,
  tpm_limit bigint, rpm_limit bigint, budget_duration text, budget_reset_at timestamp(3), blocked boolean NOT NULL DEFAULT false,
  created_at timestamp(3) NOT NULL DEFAULT now(), updated_at timestamp(3) NOT NULL DEFAULT now(),
  model_spend jsonb NOT NULL DEFAULT '{}', model_max_budget jsonb NOT NULL DEFAULT '{}', router_settings jsonb DEFAULT '{}',
  team_member_permissions text[] DEFAULT '{}', access_group_ids text[] DEFAULT '{}', policies text[] DEFAULT '{}',
  budget_limits jsonb, model_id integer UNIQUE REFERENCES "LiteLLM_ModelTable");
CREATE TABLE "LiteLLM_UserTable" (
  user_id text PRIMARY KEY, user_alias text, team_id text, sso_user_id text UNIQUE, organization_id text, object_permission_id text,
  password text, teams text[] DEFAULT '{}', user_role text, max_budget double precision, spend double precision NOT NULL DEFAULT 0,
  user_email text, models text[], metadata jsonb NOT NULL DEFAULT '{}', max_parallel_requests integer, tpm_limit bigint,
  rpm_limit bigint, budget_duration text, budget_reset_at timestamp(3), allowed_cache_controls text[] DEFAULT '{}',
  policies text[] DEFAULT '{}', model_spend jsonb NOT NULL DEFAULT '{}', model_max_budget jsonb NOT NULL DEFAULT '{}',
  created_at timestamp(3) DEFAULT now(), updated_at timestamp(3) DEFAULT now());
CREATE TABLE "LiteLLM_VerificationToken" (
  token text PRIMARY KEY, key_name text, key_alias text, soft_budget_cooldown boolean NOT NULL DEFAULT false,
  spend double precision NOT NULL DEFAULT 0, expires timestamp(3), models text[], aliases jsonb NOT NULL DEFAULT '{}',
  config jsonb NOT NULL DEFAULT '{}', router_settings jsonb DEFAULT '{}', user_id text, team_id text, agent_id text, project_id text,
  permissions jsonb NOT NULL DEFAULT '{}', max_parallel_requests integer, metadata jsonb NOT NULL DEFAULT '{}', blocked boolean,
  tpm_limit bigint, rpm_limit bigint, max_budget double precision, budget_duration text, budget_reset_at timestamp(3),
  allowed_cache_controls text[] DEFAULT '{}', allowed_routes text[] DEFAULT '{}', policies text[] DEFAULT '{}',
  access_group_ids text[] DEFAULT '{}', model_spend jsonb NOT NULL DEFAULT '{}', model_max_budget jsonb NOT NULL DEFAULT '{}',
  budget_id text REFERENCES "LiteLLM_BudgetTable", organization_id text, object_permission_id text,
  created_at timestamp(3) DEFAULT now(), created_by text, updated_at timestamp(3) DEFAULT now(), updated_by text,
  last_active timestamp(3), rotation_count integer DEFAULT 0, auto_rotate boolean DEFAULT false, rotation_interval text,
  last_rotation_at timestamp(3), key_rotation_at timestamp(3), budget_limits jsonb);
CREATE TABLE "LiteLLM_DeprecatedVerificationToken" (
  id text PRIMARY KEY, token text NOT NULL UNIQUE, active_token_id text NOT NULL, revoke_at timestamp(3) NOT NULL,
  created_at timestamp(3) NOT NULL DEFAULT now());
CREATE TABLE "LiteLLM_EndUserTable" (
  user_id text PRIMARY KEY, alias text, spend double precision NOT NULL DEFAULT 0, allowed_model_region text, default_model text,
  budget_id text REFERENCES "LiteLLM_BudgetTable", object_permission_id text, blocked boolean NOT NULL DEFAULT false);
CREATE TABLE "LiteLLM_TagTable" (
  tag_name text PRIMARY KEY, description text, models text[], model_info jsonb, spend double precision NOT NULL DEFAULT 0,
  budget_id text REFERENCES "LiteLLM_BudgetTable", created_at timestamp(3) NOT NULL DEFAULT now(), created_by text,
  updated_at timestamp(3) NOT NULL DEFAULT now());
CREATE TABLE "LiteLLM_TeamMembership" (
  user_id text NOT NULL, team_id text NOT NULL, spend double precision NOT NULL DEFAULT 0, total_spend double precision NOT NULL DEFAULT 0,
  budget_id text REFERENCES "LiteLLM_BudgetTable", PRIMARY KEY (user_id, team_id));
CREATE TABLE "LiteLLM_OrganizationMembership" (
  user_id text NOT NULL, organization_id text NOT NULL, user_role text, spend double precision DEFAULT 0, budget_id text,
  created_at timestamp(3) DEFAULT now(), updated_at timestamp(3) DEFAULT now(), PRIMARY KEY (user_id, organization_id));
CREATE TABLE "LiteLLM_ProxyModelTable" (
  model_id text PRIMARY KEY, model_name text NOT NULL, litellm_params jsonb NOT NULL, model_info jsonb,
  blocked boolean NOT NULL DEFAULT false,
  created_at timestamp(3) NOT NULL DEFAULT now(), created_by text NOT NULL DEFAULT '',
  updated_at timestamp(3) NOT NULL DEFAULT now(), updated_by text NOT NULL DEFAULT '');
CREATE TABLE "LiteLLM_CredentialsTable" (
  credential_id text PRIMARY KEY, credential_name text NOT NULL UNIQUE, credential_values jsonb NOT NULL, credential_info jsonb,
  created_at timestamp(3) NOT NULL DEFAULT now(), created_by text NOT NULL DEFAULT '',
  updated_at timestamp(3) NOT NULL DEFAULT now(), updated_by text NOT NULL DEFAULT '');
CREATE TABLE "LiteLLM_SpendLogs" (
  request_id text PRIMARY KEY, call_type text NOT NULL, api_key text NOT NULL DEFAULT '', spend double precision NOT NULL DEFAULT 0,
  total_tokens integer NOT NULL DEFAULT 0, prompt_tokens integer NOT NULL DEFAULT 0, completion_tokens integer NOT NULL DEFAULT 0,
  "startTime" timestamp(3) NOT NULL, "endTime" timestamp(3) NOT NULL, request_duration_ms integer, "completionStartTime" timestamp(3),
  model text NOT NULL DEFAULT '', model_id text DEFAULT '', model_group text DEFAULT '', custom_llm_provider text DEFAULT '',
  api_base text DEFAULT '', "user" text DEFAULT '', metadata jsonb DEFAULT '{}', cache_hit text DEFAULT '', cache_key text DEFAULT '',
  request_tags jsonb DEFAULT '[]', team_id text, organization_id text, end_user text, requester_ip_address text,
  messages jsonb DEFAULT '{}', response jsonb DEFAULT '{}', session_id text, status text, mcp_namespaced_tool_name text,
  agent_id text, proxy_server_request jsonb DEFAULT '{}');
CREATE INDEX ON "LiteLLM_SpendLogs" ("startTime", request_id);
`;

/** As LiteLLM stores a key: SHA-256 in hex. */
export function litellmHash(key: string): string {
  return hash("sha256", key);
}

/** Creates the tables in a new schema `litellm` of a database and returns the URL in the form that LiteLLM's clients use. */
export async function makeLitellmTables(databaseUrl: string): Promise<{
  readonly url: string;
  run(sql: string, values?: readonly unknown[]): Promise<void>;
  close(): Promise<void>;
}> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(
    `CREATE SCHEMA litellm; SET search_path = litellm; SET timezone = 'UTC'; ${SCHEMA}`,
  );
  const url = new URL(databaseUrl);
  url.searchParams.set("schema", "litellm");
  url.searchParams.set("connection_limit", "10");
  return {
    url: url.href,
    run: async (sql, values = []) => {
      await client.query(sql, [...values]);
    },
    close: () => client.end(),
  };
}

/** 30 teams with members, 200 users, 1,000 keys, with budgets and spend; key n is `sk-litellm-key-n`. */
export const USUAL_DATA = `
INSERT INTO "LiteLLM_BudgetTable" (budget_id, max_budget, budget_duration, rpm_limit, allowed_models)
  SELECT 'tier-' || n, n * 10, '30d', n, CASE WHEN n = 1 THEN '{mock}'::text[] ELSE '{}' END FROM generate_series(1, 5) n;
INSERT INTO "LiteLLM_OrganizationTable" (organization_id, organization_alias, budget_id, models, spend)
  SELECT 'org-' || n, 'Organization ' || n, 'tier-' || n, '{}', n * 1.5 FROM generate_series(1, 3) n;
INSERT INTO "LiteLLM_UserTable" (user_id, user_email, user_role, max_budget, budget_duration, spend, models)
  SELECT 'user-' || n, 'user' || n || '@example.org', CASE WHEN n = 1 THEN 'proxy_admin' ELSE 'internal_user' END,
    CASE WHEN n % 2 = 0 THEN 25 END, CASE WHEN n % 4 = 0 THEN '1mo' END, n * 0.01, '{}'
  FROM generate_series(1, 200) n;
INSERT INTO "LiteLLM_OrganizationMembership" (user_id, organization_id, user_role)
  SELECT 'user-' || n, 'org-' || (n % 3 + 1), CASE WHEN n < 4 THEN 'org_admin' ELSE 'internal_user' END FROM generate_series(1, 60) n;
INSERT INTO "LiteLLM_ModelTable" (aliases) VALUES ('{"house-model": "mock"}');
INSERT INTO "LiteLLM_TeamTable" (team_id, team_alias, organization_id, models, max_budget, spend, members_with_roles, team_member_permissions, model_id)
  SELECT 'team-' || t, 'Team ' || t, CASE WHEN t <= 3 THEN 'org-' || t END, '{}', 100, t * 0.5,
    (SELECT jsonb_agg(jsonb_build_object('role', CASE WHEN u = t THEN 'admin' ELSE 'user' END, 'user_id', 'user-' || u))
       FROM generate_series(t, 200, 30) u),
    CASE WHEN t = 1 THEN '{/key/generate,/mcp/nowhere}'::text[] ELSE '{}' END, CASE WHEN t = 1 THEN 1 END
  FROM generate_series(1, 30) t;
INSERT INTO "LiteLLM_TeamMembership" (user_id, team_id, spend, budget_id)
  SELECT 'user-' || u, 'team-' || ((u - 1) % 30 + 1), u * 0.001, CASE WHEN u % 10 = 0 THEN 'tier-1' END FROM generate_series(1, 200) u;
INSERT INTO "LiteLLM_EndUserTable" (user_id, alias, spend, budget_id, blocked)
  SELECT 'customer-' || n, 'Customer ' || n, n * 0.2, 'tier-2', n = 7 FROM generate_series(1, 20) n;
INSERT INTO "LiteLLM_TagTable" (tag_name, description, spend, budget_id) VALUES ('red', 'Of red things', 3, 'tier-3');
INSERT INTO "LiteLLM_VerificationToken" (token, key_name, key_alias, spend, user_id, team_id, max_budget, budget_duration, models, metadata, expires, blocked)
  SELECT encode(sha256(convert_to('sk-litellm-key-' || n, 'UTF8')), 'hex'), 'sk-...' || right('000' || n, 4), 'key-' || n, n * 0.001,
    'user-' || ((n - 1) % 200 + 1), CASE WHEN n % 3 = 0 THEN 'team-' || (n % 30 + 1) END, 5, CASE WHEN n % 2 = 0 THEN '1mo' END,
    CASE WHEN n % 7 = 0 THEN '{mock}'::text[] ELSE '{}' END, '{"tags": ["from-litellm"], "model_rpm_limit": {"mock": 100}}',
    CASE WHEN n = 500 THEN '2020-01-01 00:00:00'::timestamp END, n = 600
  FROM generate_series(1, 1000) n;
`;

/** Number and digest of the rows of each table of ours that an import could change, to be compared. */
export async function importedRows(
  pool: Pool,
): Promise<Readonly<Record<string, unknown>>> {
  const tables = [
    "keys",
    "users",
    "teams",
    "team_members",
    "organizations",
    "organization_members",
    "budgets",
    "end_users",
    "tags",
    "rotated_keys",
    "spend_totals",
    "spend_log",
    "audit_log",
  ];
  const counts: Record<string, unknown> = {};
  for (const table of tables) {
    [counts[table]] = await query(
      pool,
      `SELECT count(*), md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), '')) AS digest FROM ${table} t`,
    );
  }
  return counts;
}
