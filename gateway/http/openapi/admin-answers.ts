import { z } from "zod";
import { described } from "./described.ts";
import {
  budgetedMemberRow,
  budgetedTeamRow,
  budgetedUserRow,
  budgetRow,
  count,
  deletedKeyRow,
  dollars,
  endUserRow,
  goneOrganizationRow,
  grownOrganization,
  grownTeamRow,
  keyRow,
  listedUserRow,
  memberRow,
  moment,
  newKeyRow,
  newUserRow,
  organizationInfo,
  organizationMemberRow,
  organizationRow,
  tagRow,
  teamRow,
  updatedMemberRow,
  usedKeyRow,
  userName,
  userRow,
} from "./rows.ts";

const text = z.string();
const names = z.array(text);

/** `key` of an answer is what the request named: the key or its hash. */
const updatedKey = z.object({ ...keyRow.shape, key: text });
const pageOf = (rows: string, row: z.ZodType) =>
  z.object({
    [rows]: z.array(row),
    total: count,
    page: count,
    page_size: count,
    total_pages: count,
  });

export const KEY_ANSWERS = {
  "POST /key/generate": described(
    "Make a key. It is shown this once.",
    newKeyRow,
  ),
  "POST /key/service-account/generate": described(
    "Make a key that belongs to a team and to no user.",
    newKeyRow,
  ),
  "GET /key/info": described(
    "One key, named by itself or its hash; without a name the caller's own.",
    z.object({ key: text, info: usedKeyRow }),
  ),
  "POST /v2/key/info": described(
    "Several keys; those that are not there, or out of reach, are left out.",
    z.object({ key: names, info: z.array(keyRow) }),
  ),
  "POST /key/update": described(
    "Set fields of a key; null resets one.",
    updatedKey,
  ),
  "POST /key/bulk_update": described(
    "Set fields of up to 500 keys; each succeeds or fails alone.",
    z.object({
      total_requested: count,
      successful_updates: z.array(z.object({ key: text, key_info: keyRow })),
      failed_updates: z.array(z.object({ key: text, failed_reason: text })),
    }),
  ),
  "POST /key/delete": described(
    "Delete keys by themselves, hashes or aliases. History keeps their rows.",
    z.object({ deleted_keys: names }),
  ),
  "GET /key/list": described(
    "Keys within reach, page by page: hashes, or with return_full_object whole rows; searched, by state, sorted also by spend and by the share of the budget; status=deleted lists the history.",
    z.object({
      keys: z.array(z.union([text, deletedKeyRow, usedKeyRow])),
      total_count: count,
      current_page: count,
      total_pages: count,
    }),
  ),
  "GET /key/aliases": described(
    "Aliases of keys within reach.",
    z.object({
      aliases: names,
      total_count: count,
      current_page: count,
      total_pages: count,
    }),
  ),
  "POST /key/block": described(
    "Block a key: it is refused at once, on every instance.",
    keyRow,
  ),
  "POST /key/unblock": described("Let a blocked key work again.", keyRow),
  "POST /key/regenerate": described(
    "Give a key a new secret; the old one stops at once, or after grace_period.",
    newKeyRow,
  ),
  "POST /key/:key/regenerate": described(
    "The same, with the key in the path.",
    newKeyRow,
  ),
  "POST /key/:key/reset_spend": described(
    "Set what a key has spent in its budget's window.",
    z.object({
      key_hash: text,
      spend: dollars,
      previous_spend: dollars,
      max_budget: dollars.nullable(),
      budget_reset_at: moment.nullable(),
    }),
  ),
  "POST /key/health": described(
    "Whether the key that asks works.",
    z.object({ key: z.literal("healthy") }),
  ),
} as const;

export const USER_ANSWERS = {
  "POST /user/new": described(
    "Make a user and, unless auto_create_key is false, a first key.",
    newUserRow,
  ),
  "GET /user/info": described(
    "A user with the newest 1,000 keys and teams within reach; an admin who names none sees everybody's. GET /key/list and GET /v2/team/list have all, page by page.",
    z.object({
      user_id: text.nullable(),
      user_info: z.union([budgetedUserRow, userName]).nullable(),
      keys: z.array(keyRow),
      total_keys: count,
      teams: z.array(teamRow),
      total_teams: count,
    }),
  ),
  "POST /user/update": described(
    "Set fields of a user; null resets one.",
    z.object({ user_id: text, data: userRow }),
  ),
  "POST /user/bulk_update": described(
    "Set fields of several users, or of all; each succeeds or fails alone.",
    z.object({
      results: z.array(
        z.object({
          user_id: text.nullable(),
          user_email: text.nullable(),
          success: z.boolean(),
          error: text.nullable(),
          updated_user: userRow.nullable(),
        }),
      ),
      total_requested: count,
      successful_updates: count,
      failed_updates: count,
    }),
  ),
  "GET /user/list": described(
    "Users within reach, page by page; by name alone those whom the caller looks after only in part.",
    pageOf("users", z.union([listedUserRow, userName])),
  ),
  "POST /user/delete": described(
    "Delete users with their keys and memberships; answers how many.",
    count,
  ),
  "GET /user/available_roles": described(
    "The roles that there are.",
    z.record(text, z.object({ description: text, ui_label: text })),
  ),
} as const;

export const TEAM_ANSWERS = {
  "POST /team/new": described(
    "Make a team; who makes it administers it.",
    teamRow,
  ),
  "POST /team/update": described(
    "Set fields of a team; null resets one.",
    z.object({ team_id: text, data: teamRow }),
  ),
  "GET /team/info": described(
    "A team with its newest 1,000 keys and its members.",
    z.object({
      team_id: text,
      team_info: budgetedTeamRow,
      keys: z.array(keyRow),
      total_keys: count,
      team_memberships: z.array(budgetedMemberRow),
    }),
  ),
  "GET /team/list": described("Teams within reach.", z.array(teamRow)),
  "GET /v2/team/list": described(
    "Teams within reach, page by page.",
    pageOf("teams", budgetedTeamRow),
  ),
  "POST /team/member_add": described(
    "Add members; users who are not there are made.",
    grownTeamRow,
  ),
  "POST /team/member_accept": described(
    "Agree that the team's keys of a user (the caller by default) spend that user's own budget too.",
    memberRow,
  ),
  "POST /team/member_update": described(
    "Change a member's part, budget and limits in the team.",
    updatedMemberRow,
  ),
  "POST /team/member_delete": described(
    "Remove a member, with that user's keys in the team.",
    teamRow,
  ),
  "POST /team/delete": described(
    "Delete teams with their keys.",
    z.object({ deleted_teams: names }),
  ),
  "POST /team/block": described(
    "Block a team: all its keys are refused.",
    teamRow,
  ),
  "POST /team/unblock": described("Let a blocked team work again.", teamRow),
  "POST /team/model/add": described("Add models to a team's list.", teamRow),
  "POST /team/model/delete": described(
    "Take models from a team's list.",
    teamRow,
  ),
  "POST /team/permissions_update": described(
    "Say which key routes plain members may use.",
    teamRow,
  ),
  "GET /team/permissions_list": described(
    "Which key routes plain members may use.",
    z.object({
      team_id: text,
      team_member_permissions: names,
      all_available_permissions: names,
    }),
  ),
} as const;

export const OTHER_ANSWERS = {
  "POST /organization/new": described("Make an organization.", organizationRow),
  "PATCH /organization/update": described(
    "Set fields of an organization; null resets one.",
    organizationRow,
  ),
  "POST /organization/delete": described(
    "Delete organizations; refused while teams or keys belong to one.",
    z.array(goneOrganizationRow),
  ),
  "DELETE /organization/delete": described(
    "Delete organizations; refused while teams or keys belong to one.",
    z.array(goneOrganizationRow),
  ),
  "GET /organization/info": described(
    "An organization with members and teams.",
    organizationInfo,
  ),
  "GET /organization/list": described(
    "Organizations within reach.",
    z.array(organizationRow),
  ),
  "POST /organization/member_add": described(
    "Add members; users who are not there are made.",
    grownOrganization,
  ),
  "PATCH /organization/member_update": described(
    "Change a member's part.",
    organizationMemberRow,
  ),
  "DELETE /organization/member_delete": described(
    "Remove a member.",
    organizationMemberRow,
  ),
  "POST /customer/new": described(
    "Make an end user (the `user` of a call) with a budget or limits.",
    endUserRow,
  ),
  "POST /customer/update": described("Set fields of an end user.", endUserRow),
  "POST /customer/delete": described(
    "Delete end users.",
    z.object({ deleted_customers: count }),
  ),
  "POST /customer/block": described(
    "Block end users, known or not.",
    z.object({ blocked_users: z.array(endUserRow) }),
  ),
  "POST /customer/unblock": described(
    "Let blocked end users call again.",
    z.object({ unblocked_users: z.array(endUserRow) }),
  ),
  "GET /customer/info": described("One end user.", endUserRow),
  "GET /customer/list": described("End users.", z.array(endUserRow)),
  "POST /tag/new": described("Give a tag a budget or limits.", tagRow),
  "POST /tag/update": described("Set fields of a tag.", tagRow),
  "POST /tag/delete": described(
    "Delete a tag.",
    z.object({ deleted_tag: text }),
  ),
  "POST /tag/info": described("Several tags by name.", z.record(text, tagRow)),
  "GET /tag/list": described("Tags.", z.array(tagRow)),
  "POST /budget/new": described(
    "Make a tier that keys, users, teams, members and others can point to.",
    budgetRow,
  ),
  "POST /budget/update": described("Set fields of a tier.", budgetRow),
  "POST /budget/delete": described(
    "Delete a tier; refused while anybody points to it.",
    budgetRow,
  ),
  "POST /budget/info": described("Several tiers by id.", z.array(budgetRow)),
  "GET /budget/list": described("Tiers.", z.array(budgetRow)),
} as const;
