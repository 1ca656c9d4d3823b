import { z } from "zod";
import type { RouteName } from "../../access/policy.ts";
import type { Route } from "../../http/route.ts";
import { adminRoute, type Admin } from "../admin-route.ts";
import { tokenOf } from "../key-tokens.ts";
import { ORGANIZATION } from "../kinds/organization.ts";
import { name, queryNames, queryNumber } from "../kinds/values.ts";
import type { Conditions } from "../paging.ts";
import { findOne } from "../payers.ts";
import { reachableTeam } from "../team-access.ts";
import { reachableUser } from "../user-access.ts";
import { activity, pageOfActivity, wholeActivity } from "./activity-answer.ts";
import {
  readActivity,
  type ActivityRow,
  type ActivitySource,
  type PageOfDays,
} from "./activity-rows.ts";
import { dayRange, onDays, type DayRange } from "./days.ts";
import { keepReachableSpend, ofKey } from "./former-keys.ts";
import { MAX_NAMES } from "./most-expensive.ts";

interface Subject extends ActivitySource {
  readonly route: ActivityRoute;
  readonly plural: string;
  readonly alsoAt?: string;
  readonly params: readonly string[];
  /** Throws 403 for an id out of reach. */
  readonly requireReach: (admin: Admin, id: string) => Promise<unknown>;
  /** The ids whose activity a caller sees by default, unless it sees all. */
  readonly own: (admin: Admin) => readonly string[];
}

const SUBJECTS: readonly Subject[] = [
  {
    route: "GET /user/daily/activity",
    plural: "users",
    column: "user_id",
    aliases: ["users", "user_id", "user_alias"],
    params: ["user_id", "user_ids"],
    requireReach: async (admin, user_id) =>
      admin.actor.userId === user_id || reachableUser(admin, { user_id }),
    own: ({ actor }) => (actor.userId === null ? [] : [actor.userId]),
  },
  {
    route: "GET /team/daily/activity",
    plural: "teams",
    column: "team_id",
    aliases: ["teams", "team_id", "team_alias"],
    params: ["team_id", "team_ids"],
    requireReach: (admin, team) => reachableTeam(admin, admin.pool, team),
    own: ({ teams }) => teams,
  },
  {
    route: "GET /organization/daily/activity",
    plural: "organizations",
    column: "organization_id",
    aliases: ["organizations", "organization_id", "organization_alias"],
    params: ["organization_id", "organization_ids"],
    requireReach: async (admin, organizationId) => {
      // Members may see the organization, but its spend is for its admins only.
      admin.requireReach({
        what: `organization ${organizationId}`,
        organizationId,
        teamId: null,
      });
      await findOne(admin.pool, ORGANIZATION, {
        organization_id: organizationId,
      });
    },
    own: ({ actor }) => [...actor.organizations],
  },
  {
    route: "GET /tag/daily/activity",
    plural: "tags",
    column: null,
    aliases: null,
    params: ["tag", "tags"],
    requireReach: async () => undefined,
    own: () => [],
  },
  {
    route: "GET /customer/daily/activity",
    plural: "end users",
    alsoAt: "/end_user/daily/activity",
    column: "end_user",
    aliases: ["end_users", "user_id", "alias"],
    params: ["end_user_id", "end_user_ids"],
    requireReach: async () => undefined,
    own: () => [],
  },
];

/** Also at `/aggregated`. */
type ActivityRoute = Extract<RouteName, `GET /${string}/daily/activity`>;

/** The same days, page by page and all at once. */
function activityRoutes(subject: Subject): readonly Route[] {
  const { route, plural, alsoAt } = subject;
  const filters = z.object({
    ...dayRange,
    ...Object.fromEntries(
      subject.params.map((param) => [param, queryNames.optional()]),
    ),
    api_key: name.optional(),
    model: name.optional(),
  });
  return [
    adminRoute(
      route,
      {
        summary: `Get the activity of ${plural} by day.`,
        input: filters.extend({
          page: queryNumber(1, 10_000, 1),
          page_size: queryNumber(1, 1_000, 100),
        }),
        answer: activity,
      },
      async (admin, input) =>
        pageOfActivity(
          await readSubject(admin, subject, input, MAX_NAMES, input),
          input.page,
          input.page_size,
        ),
      alsoAt === undefined ? [] : [alsoAt],
    ),
    adminRoute(
      `${route}/aggregated`,
      {
        summary: `Get the activity of ${plural} by day, all days at once.`,
        input: filters.extend({ api_key_limit: queryNumber(1, 1_000, 100) }),
        answer: activity,
      },
      async (admin, input) =>
        wholeActivity(
          await readSubject(admin, subject, input, input.api_key_limit, null),
          input.api_key_limit,
        ),
      alsoAt === undefined ? [] : [`${alsoAt}/aggregated`],
    ),
  ];
}

interface ActivityInput extends DayRange {
  readonly api_key?: string | undefined;
  readonly model?: string | undefined;
}

async function readSubject(
  admin: Admin,
  subject: Subject,
  input: ActivityInput,
  keys: number,
  page: PageOfDays | null,
): Promise<readonly ActivityRow[]> {
  const filter = onDays(admin, input);
  // A team's admin sees only that team's part of a user in several teams.
  if (subject.column === "user_id") {
    await keepReachableSpend(admin, filter);
  }
  const given = input as Readonly<Record<string, unknown>>;
  const named = subject.params.flatMap((param) =>
    ((given[param] ?? []) as readonly string[]).slice(),
  );
  for (const id of named) {
    await subject.requireReach(admin, id);
  }
  const chosenKey = input.api_key === undefined ? null : tokenOf(input.api_key);
  const { ownKey, ofAll } = restrictTo(admin, subject, filter, named);
  const tokens = [ownKey, chosenKey].filter((token) => token !== null);
  for (const token of tokens) {
    await ofKey(admin.pool, filter, "api_key", token);
  }
  if (input.model !== undefined) {
    filter.and("(model = ? OR model_group = ?)", input.model);
  }
  return readActivity(admin, subject, {
    filter,
    byKey: tokens.length > 0,
    ofAll,
    keys,
    page,
  });
}

/**
 * Keeps the rows of the named ids, else of the visible ones; returns the caller's key where only its rows are left. The activity of all
 * users is that of the whole proxy, also of keys without a user, as in LiteLLM.
 */
function restrictTo(
  admin: Admin,
  { column, own }: Subject,
  filter: Conditions,
  named: readonly string[],
): { readonly ownKey: string | null; readonly ofAll: boolean } {
  const id = column ?? "tag";
  const ids = named.length > 0 || admin.reachesAll ? named : own(admin);
  const ofAll = column === "user_id" && admin.reachesAll && named.length === 0;
  let ownKey: string | null = null;
  if (ids.length > 0) {
    filter.and(`${id} = ANY(?)`, ids);
  } else if (!admin.reachesAll) {
    ownKey = admin.actor.token;
    if (ownKey === null) {
      filter.and("false");
    }
  } else if (!ofAll) {
    filter.and(`${id} <> ''`);
  }
  return { ownKey, ofAll };
}

export const ACTIVITY: readonly Route[] = SUBJECTS.flatMap(activityRoutes);
