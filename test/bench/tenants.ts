import { hash } from "node:crypto";
import pg from "pg";
import type { BenchGateway } from "./gateway.ts";
import { CHAT_ALIAS, EMBEDDING_ALIAS } from "./load-requests.ts";
import { withClient } from "../servers/with-client.ts";

/** A virtual key whose calls count for a key, a key × model, a team, a team member, an organization, a user and the proxy. */
export interface Tenant {
  readonly key: string;
  readonly token: string;
  readonly teamId: string;
  readonly userId: string;
}

export const TENANTS = 5;
const ORGANIZATION = "bench-organization";
/** Limits are checked on every call and never reached. */
const LIMITS = {
  max_budget: 100_000,
  budget_duration: "30d",
  rpm_limit: 1_000_000_000,
  tpm_limit: 1_000_000_000_000,
  max_parallel_requests: 100_000,
};
const LIMIT_COLUMNS = Object.keys(LIMITS).join(", ");
const LIMIT_VALUES = Object.values(LIMITS);

/** Creates one organization with five teams, each with a member and a key; all of them have every limit. */
export async function createTenants(
  gateway: BenchGateway,
  databaseUrl: string,
): Promise<readonly Tenant[]> {
  return withClient(databaseUrl, async (client) => {
    await client.query(
      `INSERT INTO organizations (organization_id, ${LIMIT_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6)`,
      [ORGANIZATION, ...LIMIT_VALUES],
    );
    const tenants: Tenant[] = [];
    for (let at = 1; at <= TENANTS; at++) {
      tenants.push(
        await createTenant(
          gateway,
          client,
          `bench-team-${at}`,
          `bench-user-${at}`,
        ),
      );
    }
    return tenants;
  });
}

async function createTenant(
  gateway: BenchGateway,
  client: pg.Client,
  teamId: string,
  userId: string,
): Promise<Tenant> {
  await client.query("INSERT INTO users (user_id) VALUES ($1)", [userId]);
  await client.query(
    `INSERT INTO teams (team_id, organization_id, ${LIMIT_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
    [teamId, ORGANIZATION, ...LIMIT_VALUES],
  );
  await client.query(
    `INSERT INTO team_members (team_id, user_id, accepted, ${LIMIT_COLUMNS}) VALUES ($1, $2, true, $3, $4, $5, $6, $7)`,
    [teamId, userId, ...LIMIT_VALUES],
  );
  const forAliases = <T>(value: T) => ({
    [CHAT_ALIAS]: value,
    [EMBEDDING_ALIAS]: value,
  });
  const created = await gateway.admin("POST", "/key/generate", {
    ...LIMITS,
    team_id: teamId,
    user_id: userId,
    models: [CHAT_ALIAS, EMBEDDING_ALIAS],
    model_max_budget: forAliases({
      budget_limit: LIMITS.max_budget,
      time_period: LIMITS.budget_duration,
    }),
    model_rpm_limit: forAliases(LIMITS.rpm_limit),
    model_tpm_limit: forAliases(LIMITS.tpm_limit),
  });
  const key = String(created["key"]);
  return {
    key,
    token: hash("sha256", key),
    teamId,
    userId,
  };
}

/** Names of the entities whose limits apply to a chat call of this tenant. */
export function limitedEntitiesOf(tenant: Tenant): readonly string[] {
  const { token, teamId, userId } = tenant;
  return [
    `key:${token}`,
    `key_model:${token}/${CHAT_ALIAS}`,
    `team:${teamId}`,
    `organization:${ORGANIZATION}`,
    `member:${teamId}/${userId}`,
    "proxy:",
  ];
}

/** Names of the entities that pay for a chat call of this tenant. */
export function payersOf(tenant: Tenant): readonly string[] {
  return [...limitedEntitiesOf(tenant), `user:${tenant.userId}`];
}
