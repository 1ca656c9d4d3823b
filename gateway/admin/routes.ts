import type { Route } from "../http/route.ts";
import { ACCESS_GROUPS } from "./access-groups.ts";
import { BUDGET_ROUTES } from "./budgets.ts";
import { BULK_MEMBERS } from "./bulk-members.ts";
import { CREDENTIALS } from "./credentials.ts";
import { CUSTOMER_ROUTES } from "./customers.ts";
import { INSTANCES } from "./instances.ts";
import { KEY_BULK_UPDATES } from "./key-bulk-update.ts";
import { KEY_ROTATION } from "./key-rotation.ts";
import { KEY_VIEWS } from "./key-views.ts";
import { KEY_CHANGES } from "./keys.ts";
import { MEMBER_SPEND } from "./member-spend.ts";
import { MODEL_ACCESS_GROUPS } from "./model-access-groups.ts";
import { MODEL_BLOCKS } from "./model-block.ts";
import { MODEL_LIST } from "./model-list.ts";
import { MODEL_STATISTICS } from "./model-statistics.ts";
import { MODEL_VIEWS } from "./model-views.ts";
import { MODEL_CHANGES } from "./models.ts";
import { ORGANIZATIONS } from "./organizations.ts";
import { ACTIVITY } from "./spend/activity.ts";
import { AUDIT_LOG } from "./audit-log.ts";
import { CHECKS } from "./spend/check.ts";
import { GLOBAL_ACTIVITY } from "./spend/global-activity.ts";
import { GLOBAL_SPEND } from "./spend/global-spend.ts";
import { CALLS } from "./spend/calls.ts";
import { LOGS } from "./spend/logs.ts";
import { OWN_CALLS } from "./spend/own-calls.ts";
import { OWN_USAGE } from "./spend/own-usage.ts";
import { REFUSALS } from "./spend/refusals.ts";
import { TABLES } from "./spend/tables.ts";
import { TAG_ROUTES } from "./tags.ts";
import { TEST_CONNECTION } from "./test-connection.ts";
import { TEAM_MEMBERS } from "./team-members.ts";
import { TEAM_VIEWS } from "./team-views.ts";
import { TEAM_CHANGES } from "./teams.ts";
import { USER_VIEWS } from "./user-views.ts";
import { USER_CHANGES } from "./users.ts";

/** The routes for operators, for admins of teams and organizations, and for users with their own objects. */
export const ADMIN_ROUTES: readonly Route[] = [
  ...KEY_CHANGES,
  ...KEY_BULK_UPDATES,
  ...KEY_ROTATION,
  ...KEY_VIEWS,
  ...USER_CHANGES,
  ...USER_VIEWS,
  ...TEAM_CHANGES,
  ...TEAM_MEMBERS,
  ...BULK_MEMBERS,
  ...MEMBER_SPEND,
  ...TEAM_VIEWS,
  ...ORGANIZATIONS,
  ...CUSTOMER_ROUTES,
  ...TAG_ROUTES,
  ...BUDGET_ROUTES,
  ...MODEL_CHANGES,
  ...MODEL_VIEWS,
  ...MODEL_LIST,
  ...MODEL_BLOCKS,
  ...MODEL_STATISTICS,
  ...CREDENTIALS,
  ...ACCESS_GROUPS,
  ...MODEL_ACCESS_GROUPS,
  ...CALLS,
  ...LOGS,
  ...REFUSALS,
  ...OWN_CALLS,
  ...OWN_USAGE,
  ...TABLES,
  ...GLOBAL_SPEND,
  ...GLOBAL_ACTIVITY,
  ...ACTIVITY,
  ...AUDIT_LOG,
  ...CHECKS,
  ...INSTANCES,
  ...TEST_CONNECTION,
];
