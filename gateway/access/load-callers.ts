import { query, type Pool } from "../database/pool.ts";
import type { KeyCaller, OtherPayer, PayerLimits } from "./callers.ts";

/**
 * The limits of the row `own`, with those of its tier `tier` where it sets none. Both are table aliases in the statement.
 */
export function limitsOf(own: string, tier: string): string {
  return `json_build_object(
    'maxBudget', coalesce(${own}.max_budget, ${tier}.max_budget),
    'budgetDuration', coalesce(${own}.budget_duration, ${tier}.budget_duration),
    'tokensPerMinute', coalesce(${own}.tpm_limit, ${tier}.tpm_limit),
    'requestsPerMinute', coalesce(${own}.rpm_limit, ${tier}.rpm_limit),
    'parallel', coalesce(${own}.max_parallel_requests, ${tier}.max_parallel_requests))`;
}

/** The models of the access groups of a row, of the table alias `of` in the statement. */
function groupModelsOf(of: string): string {
  return `ARRAY(SELECT DISTINCT unnest(g.access_model_names) FROM access_groups g WHERE g.access_group_id = ANY(${of}.access_group_ids))`;
}

const KEY_QUERY = `
  SELECT k.*, least(k.expires, rotated.valid_until) AS expires, ${limitsOf("k", "kb")} AS limits, kb.model_max_budget AS tier_model_max_budget,
    u.models AS user_models, u.user_role, u.blocked AS user_blocked, CASE WHEN u.user_id IS NOT NULL THEN ${limitsOf("u", "ub")} END AS user_limits,
    ${groupModelsOf("k")} AS group_models, ${groupModelsOf("t")} AS team_group_models,
    t.team_alias, t.models AS team_models, t.model_aliases, t.tags AS team_tags, t.metadata -> 'tags' AS team_metadata_tags,
    t.guardrails AS team_guardrails, t.metadata -> 'guardrails' AS team_metadata_guardrails, t.blocked AS team_blocked, t.team_member_budget,
    t.team_member_budget_duration, t.team_member_tpm_limit, t.team_member_rpm_limit,
    CASE WHEN t.team_id IS NOT NULL THEN ${limitsOf("t", "tb")} END AS team_limits,
    CASE WHEN m.user_id IS NOT NULL THEN ${limitsOf("m", "mb")} END AS member_limits, m.allowed_models AS member_models,
    k.team_id IS NULL OR k.jwt_issuer IS NOT NULL OR coalesce(m.accepted, false) AS user_pays,
    o.organization_id AS org_id, o.models AS org_models,
    CASE WHEN o.organization_id IS NOT NULL THEN ${limitsOf("o", "ob")} END AS org_limits
  FROM keys k
  LEFT JOIN budgets kb ON kb.budget_id = k.budget_id
  LEFT JOIN users u ON u.user_id = k.user_id
  LEFT JOIN budgets ub ON ub.budget_id = u.budget_id
  LEFT JOIN teams t ON t.team_id = k.team_id
  LEFT JOIN budgets tb ON tb.budget_id = t.budget_id
  LEFT JOIN team_members m ON m.team_id = k.team_id AND m.user_id = k.user_id
  LEFT JOIN budgets mb ON mb.budget_id = m.budget_id
  LEFT JOIN organizations o ON o.organization_id = coalesce(k.organization_id, t.organization_id)
  LEFT JOIN budgets ob ON ob.budget_id = o.budget_id
  LEFT JOIN rotated_keys rotated ON rotated.old_token = $1
  WHERE k.token = coalesce(rotated.token, $1)`;

interface KeyRow {
  readonly token: string;
  readonly key_name: string;
  readonly key_alias: string | null;
  readonly user_id: string | null;
  readonly team_id: string | null;
  readonly models: string[];
  readonly group_models: string[];
  readonly aliases: Record<string, string>;
  readonly tags: string[];
  readonly guardrails: string[];
  readonly store_prompts: boolean;
  readonly metadata: Record<string, unknown>;
  readonly allowed_routes: string[];
  readonly key_type: string;
  readonly blocked: boolean;
  readonly expires: Date | null;
  readonly temp_budget_increase: number | null;
  readonly temp_budget_expiry: Date | null;
  readonly limits: PayerLimits;
  readonly model_max_budget: Record<string, ModelBudget>;
  readonly tier_model_max_budget: Record<string, ModelBudget> | null;
  readonly model_rpm_limit: Record<string, number>;
  readonly model_tpm_limit: Record<string, number>;
  readonly user_models: string[] | null;
  readonly user_role: string | null;
  readonly user_blocked: boolean | null;
  readonly user_limits: PayerLimits | null;
  readonly team_alias: string | null;
  readonly team_models: string[] | null;
  readonly team_group_models: string[];
  readonly model_aliases: Record<string, string> | null;
  readonly team_tags: string[] | null;
  readonly team_metadata_tags: unknown;
  readonly team_guardrails: string[] | null;
  readonly team_metadata_guardrails: unknown;
  readonly team_blocked: boolean | null;
  readonly team_member_budget: number | null;
  readonly team_member_budget_duration: string | null;
  readonly team_member_tpm_limit: number | null;
  readonly team_member_rpm_limit: number | null;
  readonly team_limits: PayerLimits | null;
  readonly member_limits: PayerLimits | null;
  readonly member_models: string[] | null;
  readonly user_pays: boolean;
  readonly org_id: string | null;
  readonly org_models: string[] | null;
  readonly org_limits: PayerLimits | null;
}

interface ModelBudget {
  readonly budget_limit: number;
  readonly time_period?: string | null;
}

export async function loadKey(
  pool: Pool,
  token: string,
): Promise<KeyCaller | null> {
  const [row] = await query<KeyRow>(pool, KEY_QUERY, [token]);
  if (row === undefined) {
    return null;
  }
  return {
    kind: "key",
    token: row.token,
    alias: row.key_alias,
    keyName: row.key_name,
    models: withGroups(row.models, row.group_models),
    aliases: new Map(Object.entries(row.aliases)),
    tags: [...row.tags, ...namesIn(row.metadata["tags"])],
    guardrails: [...row.guardrails, ...namesIn(row.metadata["guardrails"])],
    storePrompts: row.store_prompts,
    metadata: row.metadata,
    allowedRoutes: row.allowed_routes,
    keyType: row.key_type,
    blocked: row.blocked,
    expires: row.expires?.getTime() ?? null,
    temporaryIncrease: temporaryIncreaseOf(row),
    limits: row.limits,
    modelLimits: modelLimits(row),
    userId: row.user_id,
    userPays: row.user_pays,
    user: userOf(row),
    team: teamOf(row),
    organization: organizationOf(row),
  };
}

/** A list of allowed models with those of access groups. An empty list allows all already. */
function withGroups(
  models: readonly string[],
  ofGroups: readonly string[],
): readonly string[] {
  return models.length === 0 ? models : [...models, ...ofGroups];
}

/** LiteLLM's clients also set tags and guardrails in the metadata of a key or a team. */
function namesIn(value: unknown): readonly string[] {
  return Array.isArray(value)
    ? value.filter((name) => typeof name === "string")
    : [];
}

function temporaryIncreaseOf(row: KeyRow): KeyCaller["temporaryIncrease"] {
  const { temp_budget_increase: dollars, temp_budget_expiry: until } = row;
  return dollars !== null && until !== null
    ? { dollars, until: until.getTime() }
    : null;
}

function userOf(row: KeyRow): KeyCaller["user"] {
  if (row.user_limits === null) {
    return null;
  }
  return {
    models: row.user_models ?? [],
    role: row.user_role ?? "internal_user",
    blocked: row.user_blocked ?? false,
    limits: row.user_limits,
  };
}

function teamOf(row: KeyRow): KeyCaller["team"] {
  if (row.team_id === null || row.team_limits === null) {
    return null;
  }
  return {
    id: row.team_id,
    alias: row.team_alias,
    models: withGroups(row.team_models ?? [], row.team_group_models),
    modelAliases: new Map(Object.entries(row.model_aliases ?? {})),
    tags: [...(row.team_tags ?? []), ...namesIn(row.team_metadata_tags)],
    guardrails: [
      ...(row.team_guardrails ?? []),
      ...namesIn(row.team_metadata_guardrails),
    ],
    blocked: row.team_blocked ?? false,
    limits: row.team_limits,
    memberLimits: memberLimitsOf(row),
    memberModels: row.member_models ?? [],
  };
}

/** What the member does not have itself, nor through its tier, is as the team has it for its members. */
function memberLimitsOf(row: KeyRow): PayerLimits | null {
  const own = row.member_limits;
  return own === null
    ? null
    : {
        ...own,
        maxBudget: own.maxBudget ?? row.team_member_budget,
        budgetDuration: own.budgetDuration ?? row.team_member_budget_duration,
        tokensPerMinute: own.tokensPerMinute ?? row.team_member_tpm_limit,
        requestsPerMinute: own.requestsPerMinute ?? row.team_member_rpm_limit,
      };
}

function organizationOf(row: KeyRow): KeyCaller["organization"] {
  if (row.org_id === null || row.org_limits === null) {
    return null;
  }
  return {
    id: row.org_id,
    models: row.org_models ?? [],
    limits: row.org_limits,
  };
}

function modelLimits(row: KeyRow): ReadonlyMap<string, PayerLimits> {
  const budgets = new Map(
    Object.entries(
      Object.keys(row.model_max_budget).length > 0
        ? row.model_max_budget
        : (row.tier_model_max_budget ?? {}),
    ),
  );
  const requests = new Map(Object.entries(row.model_rpm_limit));
  const tokens = new Map(Object.entries(row.model_tpm_limit));
  const aliases = [budgets, requests, tokens].flatMap((limited) => [
    ...limited.keys(),
  ]);
  return new Map(
    aliases.map((alias) => [
      alias,
      {
        maxBudget: budgets.get(alias)?.budget_limit ?? null,
        budgetDuration: budgets.get(alias)?.time_period ?? null,
        requestsPerMinute: requests.get(alias) ?? null,
        tokensPerMinute: tokens.get(alias) ?? null,
        parallel: null,
      },
    ]),
  );
}

export type PayerTable = "users" | "end_users" | "tags";

export async function loadPayer(
  pool: Pool,
  table: PayerTable,
  idColumn: "user_id" | "name",
  id: string,
): Promise<OtherPayer | null> {
  const blocked = table === "end_users" ? "p.blocked" : "false";
  const [row] = await query<{ blocked: boolean; limits: PayerLimits }>(
    pool,
    `SELECT ${blocked} AS blocked, ${limitsOf("p", "b")} AS limits
       FROM ${table} p LEFT JOIN budgets b ON b.budget_id = p.budget_id WHERE p.${idColumn} = $1`,
    [id],
  );
  return row === undefined ? null : { id, ...row };
}
