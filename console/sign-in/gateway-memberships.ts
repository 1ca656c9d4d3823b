import type { Claims } from "../../core/tokens/claims.ts";
import { z } from "zod";
import { Refusal, type AdminApi } from "../../supervisor/gateway/admin-api.ts";
import { findTeamId } from "../../supervisor/gateway/owners.ts";
import { organizationList, userInfo } from "../../supervisor/gateway/rows.ts";
import type { ProviderConfig } from "../../supervisor/sign-in/config.ts";
import { valuesOf } from "./identity.ts";

type UsersConfig = NonNullable<ProviderConfig["users"]>;
type TeamRole = UsersConfig["teams"][string][number]["role"];

const memberRows = z.object({
  members_with_roles: z.array(
    z.looseObject({ user_id: z.string(), role: z.string() }),
  ),
});

/**
 * Makes a user a member of the teams and organizations that its claims map to, and removes it from the others that are in the maps.
 * Those that are in no map are left alone. Returns what the gateway rejected, such as an unknown team, one sentence each.
 */
export async function syncMemberships(
  api: AdminApi,
  userId: string,
  config: ProviderConfig,
  claims: Claims,
): Promise<readonly string[]> {
  const { users, roles } = config;
  const claim = users?.claim ?? roles.claim;
  if (users === undefined || isLeftOut(claims, claim)) {
    return [];
  }
  const values = valuesOf(claims, claim);
  const problems: string[] = [];
  const attempt = async (act: () => Promise<unknown>) => {
    try {
      await act();
    } catch (error) {
      if (!(error instanceof Refusal) || error.status >= 500) {
        throw error;
      }
      problems.push(...error.sentences);
    }
  };
  await syncTeams(api, userId, wantedTeams(users, values), attempt);
  await syncOrganizations(api, userId, wantedIn(users, values), attempt);
  return problems;
}

type Attempt = (act: () => Promise<unknown>) => Promise<void>;

/** Entra and others leave out a long list of groups, and say so: nothing is known about them then. */
function isLeftOut(claims: Claims, claim: string): boolean {
  const { _claim_names: elsewhere, hasgroups } = claims;
  return (
    (typeof elsewhere === "object" &&
      elsewhere !== null &&
      Object.hasOwn(elsewhere, claim)) ||
    (claim === "groups" && (hasgroups === true || hasgroups === "true"))
  );
}

/** The teams of the map, each with the wanted role; null: not a member. */
function wantedTeams(
  { teams }: UsersConfig,
  values: readonly string[],
): ReadonlyMap<string, TeamRole | null> {
  const wanted = new Map<string, TeamRole | null>();
  for (const [value, entries] of Object.entries(teams)) {
    for (const { team, role } of entries) {
      const given = values.includes(value) ? role : null;
      wanted.set(team, higher(wanted.get(team), given));
    }
  }
  return wanted;
}

function wantedIn(
  { organizations }: UsersConfig,
  values: readonly string[],
): ReadonlyMap<string, boolean> {
  const wanted = new Map<string, boolean>();
  for (const [value, names] of Object.entries(organizations)) {
    for (const name of names) {
      wanted.set(name, wanted.get(name) === true || values.includes(value));
    }
  }
  return wanted;
}

async function syncTeams(
  api: AdminApi,
  userId: string,
  wanted: ReadonlyMap<string, TeamRole | null>,
  attempt: Attempt,
): Promise<void> {
  if (wanted.size === 0) {
    return;
  }
  const query = new URLSearchParams({ user_id: userId }).toString();
  const { teams } = userInfo.parse(await api.ask("GET", `/user/info?${query}`));
  const roles = new Map<string, TeamRole | null>();
  for (const [name, role] of wanted) {
    const known = teams.find(({ team_id: id, team_alias: alias }) =>
      isNamed(name, id, alias),
    )?.team_id;
    await attempt(async () => {
      if (known !== undefined || role !== null) {
        const id = known ?? (await findTeamId(api, name));
        roles.set(id, higher(roles.get(id), role));
      }
    });
  }
  for (const [id, role] of roles) {
    const current = teams.find((team) => team.team_id === id);
    const member = { team_id: id, user_id: userId };
    await attempt(async () => {
      if (current === undefined) {
        // Those that are not current are wanted.
        await api.ask("POST", "/team/member_add", {
          team_id: id,
          member: { user_id: userId, role },
        });
      } else if (role === null) {
        await api.ask("POST", "/team/member_delete", member);
      } else if (roleIn(current, userId) !== role) {
        await api.ask("POST", "/team/member_update", { ...member, role });
      }
    });
  }
}

function higher(
  one: TeamRole | null | undefined,
  other: TeamRole | null,
): TeamRole | null {
  return one === "admin" ? one : (other ?? one ?? null);
}

function roleIn(team: unknown, userId: string): string | undefined {
  return memberRows
    .parse(team)
    .members_with_roles.find(({ user_id: id }) => id === userId)?.role;
}

async function syncOrganizations(
  api: AdminApi,
  userId: string,
  wanted: ReadonlyMap<string, boolean>,
  attempt: Attempt,
): Promise<void> {
  if (wanted.size === 0) {
    return;
  }
  const list = async (of: AdminApi) =>
    organizationList.parse(await of.ask("GET", "/organization/list"));
  const [all, own] = await Promise.all([
    list(api),
    list(api.actingFor(userId)),
  ]);
  const ownIds = new Set(own.map(({ organization_id: id }) => id));
  const wantedIds = new Map<string, boolean>();
  for (const [name, isWanted] of wanted) {
    // The gateway names an unknown one.
    const id =
      all.find((each) =>
        isNamed(name, each.organization_id, each.organization_alias),
      )?.organization_id ?? name;
    wantedIds.set(id, isWanted || wantedIds.get(id) === true);
  }
  for (const [organization_id, isWanted] of wantedIds) {
    const isMember = ownIds.has(organization_id);
    await attempt(async () => {
      if (isWanted && !isMember) {
        await api.ask("POST", "/organization/member_add", {
          organization_id,
          member: { user_id: userId, role: "internal_user" },
        });
      } else if (!isWanted && isMember) {
        await api.ask("DELETE", "/organization/member_delete", {
          organization_id,
          user_id: userId,
        });
      }
    });
  }
}

function isNamed(name: string, id: string, alias: string | null): boolean {
  return id === name || alias?.toLowerCase() === name.toLowerCase();
}
