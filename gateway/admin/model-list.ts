import { z } from "zod";
import { administersTeam } from "../access/actor.ts";
import { listAllows, mayUse } from "../access/models.ts";
import { query } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { CallError } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { accessGroupsOf, type PricedDeployment } from "../routing/catalog.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { out } from "./kinds/out.ts";
import { name, queryFlag, queryNumber } from "./kinds/values.ts";
import { describe, modelRow, visible } from "./model-views.ts";

const SORTED_BY = [
  "model_name",
  "created_at",
  "updated_at",
  "costs",
  "status",
] as const;

const listQuery = z.object({
  model: name.optional(),
  modelId: name.optional(),
  /** In the name of the model, or of the provider's. */
  search: name.optional(),
  /** Models that the caller added. */
  user_models_only: queryFlag.default(false),
  /** Adds `access_via_team_ids` and `direct_access`, and leaves out models that neither gives access to. */
  include_team_models: queryFlag.default(false),
  teamId: name.optional(),
  access_group: name.optional(),
  wildcard_only: queryFlag.default(false),
  blocked: queryFlag.optional(),
  exclude_auto_routers: queryFlag.optional(),
  use_stored_params: queryFlag.optional(),
  debug: queryFlag.optional(),
  sortBy: z
    .enum(SORTED_BY, `must be one of ${SORTED_BY.join(", ")}`)
    .optional(),
  sortOrder: z.enum(["asc", "desc"]).default("asc"),
  page: queryNumber(1, 1_000_000, 1),
  size: queryNumber(1, 1_000, 50),
});

type ListQuery = z.output<typeof listQuery>;

const modelList = adminRoute(
  "GET /v2/model/info",
  {
    summary:
      "List the deployments of the aliases that the key may use, and of the teams that it administers, filtered, sorted and page by page.",
    input: listQuery,
    answer: z.object({
      data: z.array(modelRow),
      total_count: out.count,
      current_page: out.count,
      total_pages: out.count,
      size: out.count,
    }),
  },
  async (admin, input) => {
    const stamps = await stampsOf(admin);
    const teams = await teamsFor(admin, input);
    const found = visible(admin)
      .filter((deployment) => matches(admin, input, stamps, deployment))
      .map((deployment) => ({
        deployment,
        access: accessTo(admin, teams, deployment),
      }))
      .filter(({ access }) => isAccessible(input, access));
    const rows = found.map(({ deployment, access }) => {
      const row = describe(admin, deployment);
      const info = { ...row.model_info, ...stamps.get(deployment.id) };
      const ways = input.include_team_models ? access : {};
      return { ...row, model_info: { ...info, ...ways } };
    });
    const { page, size } = input;
    return {
      data: sorted(rows, input).slice((page - 1) * size, page * size),
      total_count: rows.length,
      current_page: page,
      total_pages: Math.ceil(rows.length / size),
      size,
    };
  },
);

/** Who added and changed each stored model, and when. */
async function stampsOf({ pool }: Admin): Promise<ReadonlyMap<unknown, Row>> {
  const rows = await query<Row>(
    pool,
    "SELECT model_id, created_at, created_by, updated_at, updated_by FROM models",
  );
  return new Map(rows.map(({ model_id: id, ...stamps }) => [id, stamps]));
}

function matches(
  { actor }: Admin,
  input: ListQuery,
  stamps: ReadonlyMap<unknown, Row>,
  deployment: PricedDeployment,
): boolean {
  const { id, alias, providerName, model } = deployment;
  const { search, access_group: group } = input;
  const names = `${alias} ${providerName}/${model}`.toLowerCase();
  return (
    (input.model === undefined || alias === input.model) &&
    (input.modelId === undefined || id === input.modelId) &&
    (search === undefined || names.includes(search.toLowerCase())) &&
    (group === undefined || accessGroupsOf(deployment).includes(group)) &&
    (!input.wildcard_only || alias.includes("*")) &&
    (input.blocked === undefined || deployment.blocked === input.blocked) &&
    (!input.user_models_only || stamps.get(id)?.["created_by"] === actor.name)
  );
}

interface Team {
  readonly team_id: string;
  readonly models: readonly string[];
}

/** The teams whose access is shown or asked for: those that the caller sees. */
async function teamsFor(
  { pool, actor, reachesAll }: Admin,
  { include_team_models: shown, teamId }: ListQuery,
): Promise<readonly Team[]> {
  if (!shown && teamId === undefined) {
    return [];
  }
  const teams = await query<Team & Row>(
    pool,
    `SELECT team_id, CASE WHEN models = '{}' THEN models ELSE models || ARRAY(
        SELECT DISTINCT unnest(g.access_model_names) FROM access_groups g WHERE g.access_group_id = ANY(access_group_ids)) END AS models
       FROM teams WHERE $1::text IS NULL OR team_id = $1 ORDER BY team_id`,
    [shown ? null : teamId],
  );
  const seen = teams.filter(
    ({ team_id: id }) =>
      reachesAll || actor.teams.has(id) || administersTeam(actor, id),
  );
  if (teamId !== undefined && seen.every(({ team_id: id }) => id !== teamId)) {
    throw new CallError(
      "unknown_object",
      `Team ${teamId} not found, or not a team of this key. GET /team/list lists its teams.`,
      { param: "teamId" },
    );
  }
  return seen;
}

interface Access {
  /** Without a team: by the caller's own key. */
  readonly direct_access: boolean;
  readonly access_via_team_ids: readonly string[];
}

function accessTo(
  { gateway, caller }: Admin,
  teams: readonly Team[],
  { alias, teamId }: PricedDeployment,
): Access {
  const group = gateway.catalog.find(alias, teamId);
  const allows = ({ team_id: id, models }: Team) =>
    group !== null &&
    (teamId === null ? listAllows(models, group) : teamId === id);
  return {
    direct_access: group !== null && teamId === null && mayUse(caller, group),
    access_via_team_ids: teams.filter(allows).map(({ team_id: id }) => id),
  };
}

function isAccessible(
  { include_team_models: shown, teamId }: ListQuery,
  { direct_access: direct, access_via_team_ids: ids }: Access,
): boolean {
  if (teamId !== undefined) {
    return ids.includes(teamId);
  }
  return !shown || direct || ids.length > 0;
}

type Listed = ReturnType<typeof describe>;

/** Unsorted, in the order of the configuration file, then of their creation. Those without the value come last. */
function sorted(
  rows: readonly Listed[],
  { sortBy, sortOrder }: ListQuery,
): readonly Listed[] {
  if (sortBy === undefined) {
    return rows;
  }
  const direction = sortOrder === "asc" ? 1 : -1;
  return rows.toSorted((one, other) => {
    const [a, b] = [sortValue(one, sortBy), sortValue(other, sortBy)];
    if (a === null || b === null) {
      return Number(a === null) - Number(b === null);
    }
    return a === b ? 0 : direction * (a < b ? -1 : 1);
  });
}

function sortValue(
  { model_name: alias, model_info: info }: Listed,
  by: (typeof SORTED_BY)[number],
): string | number | null {
  const given: Readonly<Record<string, unknown>> = info;
  switch (by) {
    case "model_name":
      return alias;
    case "costs":
      return given["input_cost_per_token"] as number | null;
    case "status":
      return given["status"] as string;
    case "created_at":
    case "updated_at":
      return (given[by] as Date | undefined)?.getTime() ?? null;
  }
}

export const MODEL_LIST: readonly Route[] = [modelList];
