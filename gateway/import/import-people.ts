import { BUDGET } from "../admin/kinds/budget.ts";
import { END_USER } from "../admin/kinds/customer.ts";
import {
  ORGANIZATION,
  ORGANIZATION_MEMBER,
} from "../admin/kinds/organization.ts";
import { TAG } from "../admin/kinds/tag.ts";
import { USER } from "../admin/kinds/user.ts";
import { insertRow } from "../database/rows.ts";
import {
  budgetOf,
  endUserOf,
  organizationOf,
  tagOf,
  textOf,
  userOf,
} from "./convert.ts";
import {
  ACTOR,
  type ImportContext,
  idsOf,
  importRow,
  wasDeleted,
  withKnownTier,
} from "./import-row.ts";

/** LiteLLM books what the whole proxy spends to a user of this name. */
const PROXY_BUDGET_USER = "litellm-proxy-budget";

export async function importBudgets(context: ImportContext): Promise<void> {
  for (const row of await context.source.rows("budgets")) {
    await importRow(context, BUDGET, "tiers", budgetOf(row, context.notes));
  }
}

export async function importOrganizations(
  context: ImportContext,
): Promise<void> {
  const { client, source, notes } = context;
  const tiers = await idsOf(client, BUDGET);
  for (const given of await source.rows("organizations")) {
    const row = organizationOf(given, notes);
    const name = String(row["organization_id"]);
    await importRow(
      context,
      ORGANIZATION,
      "organizations",
      withKnownTier(context, tiers, "organizations", name, row),
      given["spend"],
    );
  }
}

export async function importUsers(context: ImportContext): Promise<void> {
  for (const given of await context.source.rows("users")) {
    if (given["user_id"] === PROXY_BUDGET_USER) {
      context.notes.left(
        "users",
        PROXY_BUDGET_USER,
        "it represents the whole proxy, whose spend starts at 0",
      );
      continue;
    }
    await importRow(
      context,
      USER,
      "users",
      userOf(given, context.notes),
      given["spend"],
    );
  }
}

export async function importOrganizationMembers(
  context: ImportContext,
): Promise<void> {
  const { client, source, notes } = context;
  const organizations = await idsOf(client, ORGANIZATION);
  for (const row of await source.rows("organizationMembers")) {
    const organization = String(row["organization_id"]);
    const user = String(row["user_id"]);
    const name = `${organization}/${user}`;
    if (!organizations.has(organization)) {
      notes.left(
        "organization members",
        name,
        "the organization no longer exists",
      );
      continue;
    }
    if (textOf(row["budget_id"]) !== null) {
      notes.changed(
        "organization members",
        name,
        "budgets of organization members are not supported",
      );
    }
    if (!(await ensureUser(context, user, "organization members", name))) {
      continue;
    }
    await importRow(context, ORGANIZATION_MEMBER, "organization members", {
      organization_id: organization,
      user_id: user,
      role: textOf(row["user_role"]) ?? "internal_user",
    });
  }
}

export async function importEndUsersAndTags(
  context: ImportContext,
): Promise<void> {
  const { client, source, notes } = context;
  const tiers = await idsOf(client, BUDGET);
  for (const [table, of, plural, convert] of [
    ["endUsers", END_USER, "end users", endUserOf],
    ["tags", TAG, "tags", tagOf],
  ] as const) {
    for (const given of await source.rows(table)) {
      const row = convert(given, notes);
      const name = String(row[of.id[0] ?? ""]);
      const known = withKnownTier(context, tiers, plural, name, row);
      await importRow(context, of, plural, known, given["spend"]);
    }
  }
}

/** Creates the user of a membership that has no row in LiteLLM, as its first call would. False: deleted in Hearth. */
export async function ensureUser(
  context: ImportContext,
  userId: string,
  plural: string,
  name: string,
): Promise<boolean> {
  if (await wasDeleted(context, USER, { user_id: userId })) {
    context.notes.left(plural, name, "its user was deleted here");
    return false;
  }
  await insertRow(
    context.client,
    "users",
    { user_id: userId, created_by: ACTOR, updated_by: ACTOR },
    "ON CONFLICT DO NOTHING",
  );
  return true;
}
