import { BUDGET } from "../admin/kinds/budget.ts";
import { MEMBER } from "../admin/kinds/member.ts";
import { ORGANIZATION } from "../admin/kinds/organization.ts";
import { TEAM } from "../admin/kinds/team.ts";
import type { Row } from "../database/rows.ts";
import { ensureUser } from "./import-people.ts";
import { listOf, namesOf, objectOf, teamOf, textOf } from "./convert.ts";
import {
  type ImportContext,
  idsOf,
  importRow,
  withKnownTier,
} from "./import-row.ts";

export async function importTeams(context: ImportContext): Promise<void> {
  const { client, source, notes } = context;
  const organizations = await idsOf(client, ORGANIZATION);
  const aliases = new Map(
    (await source.rows("modelAliases")).map((row) => [
      row["id"],
      row["aliases"],
    ]),
  );
  const tiers = new Map(
    (await source.rows("budgets")).map((row) => [row["budget_id"], row]),
  );
  const memberships = Map.groupBy(await source.rows("teamMembers"), (row) =>
    String(row["team_id"]),
  );
  for (const given of await source.rows("teams")) {
    const name = String(given["team_id"]);
    const organization = textOf(given["organization_id"]);
    if (name.includes("/")) {
      notes.left(
        "teams",
        name,
        "its id contains a slash, which is not allowed",
      );
      continue;
    }
    if (organization !== null && !organizations.has(organization)) {
      notes.left("teams", name, "its organization no longer exists");
      continue;
    }
    const memberTier = tiers.get(
      objectOf(given["metadata"])["team_member_budget_id"],
    );
    const row = teamOf(
      given,
      objectOf(aliases.get(given["model_id"])),
      memberTier ?? {},
      notes,
    );
    if (await importRow(context, TEAM, "teams", row, given["spend"])) {
      await importMembers(context, given, memberships.get(name) ?? [], tiers);
    }
  }
}

/** A team's row has its members; their spend and tiers are in a separate table, their models in their tiers. */
async function importMembers(
  context: ImportContext,
  team: Row,
  memberships: readonly Row[],
  litellmTiers: ReadonlyMap<unknown, Row>,
): Promise<void> {
  const { client, notes } = context;
  const tiers = await idsOf(client, BUDGET);
  const teamId = String(team["team_id"]);
  const byUser = new Map(
    memberships.map((row) => [String(row["user_id"]), row]),
  );
  const roles = new Map<string, string>();
  for (const member of listOf(team["members_with_roles"]).map(objectOf)) {
    const user = textOf(member["user_id"]);
    if (user === null) {
      notes.left(
        "team members",
        `${teamId}/${String(member["user_email"])}`,
        "no user has this e-mail address",
      );
    } else {
      roles.set(user, member["role"] === "admin" ? "admin" : "user");
    }
  }
  for (const user of byUser.keys()) {
    if (!roles.has(user)) {
      roles.set(user, "user");
    }
  }
  for (const [user, role] of roles) {
    const membership = byUser.get(user);
    const name = `${teamId}/${user}`;
    if (!(await ensureUser(context, user, "team members", name))) {
      continue;
    }
    await importRow(
      context,
      MEMBER,
      "team members",
      withKnownTier(context, tiers, "team members", name, {
        team_id: teamId,
        user_id: user,
        role,
        budget_id: textOf(membership?.["budget_id"]),
        allowed_models: namesOf(
          litellmTiers.get(membership?.["budget_id"])?.["allowed_models"],
        ),
      }),
      membership?.["spend"],
    );
  }
}
