import { z } from "zod";
import { MASTER_USER } from "../../access/callers.ts";
import { hideAddresses } from "../../calls/hide-addresses.ts";
import type { Admin } from "../admin-route.ts";
import { name, queryNumber } from "../kinds/values.ts";
import { contains } from "../paging.ts";
import { keepReachable } from "../reachable-rows.ts";
import { tokenNamed, teamNamed, userNamed } from "./call-names.ts";
import type { Driver, FitsError, Restrict } from "./call-search.ts";
import { hashesOf } from "./former-keys.ts";
import { keepRange, queryMoment } from "./log-range.ts";

/** Above these, calls have an index of their own: `spend_log_expensive` and `spend_log_slow`. */
const EXPENSIVE_DOLLARS = 0.1;
const SLOW_MS = 30_000;
const MAX_DURATION_MS = 999_999_999;

const dollars = z
  .string()
  .regex(/^\d{1,7}(\.\d{1,12})?$/, "must be a number of dollars such as 0.05")
  .meta({ type: "number", pattern: undefined })
  .transform(Number);

export const callFilters = {
  key: name.optional().meta({ description: "A key's hash, name or text." }),
  user: name.optional().meta({ description: "An id, email address or alias." }),
  team: name.optional().meta({ description: "An id or alias." }),
  model: name.optional().meta({ description: "The name that was called." }),
  provider: name.optional(),
  status: z
    .enum(
      ["success", "failure", "interrupted"],
      "must be success, failure or interrupted",
    )
    .optional(),
  min_spend: dollars.optional(),
  min_duration_ms: queryNumber(0, MAX_DURATION_MS, 0),
  tag: name.optional(),
  error: name.optional().meta({
    description: "A part of the text of its error, in any case.",
  }),
  start_date: queryMoment.optional(),
  end_date: queryMoment.optional(),
} as const;

type CallFilters = z.output<z.ZodObject<typeof callFilters>>;

/** What a search for calls is led by and filtered by. */
export interface Restrictions {
  readonly drivers: readonly Driver[];
  readonly filters: readonly Restrict[];
  readonly fitsError: FitsError | null;
  readonly range: Restrict;
}

/** Throws 400 naming a key, user or team that does not exist, for those who see all. */
export async function restrictionsOf(
  admin: Admin,
  input: CallFilters,
): Promise<Restrictions> {
  const [reach, key, user, team] = await Promise.all([
    reachOf(admin),
    input.key === undefined ? null : ofKey(admin, input.key),
    input.user === undefined ? null : userNamed(admin, input.user),
    input.team === undefined ? null : teamNamed(admin, input.team),
  ]);
  const drivers = [
    reach?.driver ?? null,
    key,
    user === null ? null : driverOf(equal("l.user_id = ?", user)),
    team === null ? null : driverOf(equal("l.team_id = ?", team)),
    ofStatus(input),
    above("l.spend >= 0.1", input.min_spend, EXPENSIVE_DOLLARS),
    above(
      "l.ended_at - l.started_at >= interval '30 seconds'",
      input.min_duration_ms,
      SLOW_MS,
    ),
  ].filter((driver) => driver !== null);
  return {
    drivers,
    filters: [...(reach === null ? [] : [reach.filter]), ...filtersOf(input)],
    fitsError: shownErrorWith(admin, input.error),
    range: (to) => keepRange(to, input, admin.windowing.timeZone),
  };
}

const CALL_FILTERS: Readonly<Partial<Record<keyof CallFilters, string>>> = {
  model: "l.model_group = ?",
  provider: "l.provider = ?",
  min_spend: "l.spend >= ?",
  tag: "? = ANY(l.tags)",
  error: contains("l.metadata #>> '{error_information,error_message}'"),
};

function filtersOf(input: CallFilters): readonly Restrict[] {
  const { min_duration_ms: minMs, status } = input;
  const named = Object.entries(CALL_FILTERS).flatMap(([field, condition]) => {
    const value = input[field as keyof CallFilters];
    return value === undefined
      ? []
      : [(to: Parameters<Restrict>[0]) => to.and(condition, value)];
  });
  return [
    ...named,
    ...(minMs === 0
      ? []
      : [
          equal(
            "l.payer IS NULL AND l.ended_at - l.started_at >= ?::float8 * interval '1 millisecond'",
            minMs,
          ),
        ]),
    ...(status === "success" ? [equal("l.status = ?", status)] : []),
  ];
}

/** Addresses in errors are hidden from those who do not see all, and must not be found out by searches. */
function shownErrorWith(
  { gateway, reachesAll }: Admin,
  part: string | undefined,
): FitsError | null {
  return reachesAll || part === undefined
    ? null
    : (message) =>
        hideAddresses(gateway.catalog, message)
          .toLowerCase()
          .includes(part.toLowerCase());
}

function equal(condition: string, value: unknown): Restrict {
  return (to) => to.and(condition, value);
}

function driverOf(condition: Restrict): Driver {
  return { branches: [condition], condition };
}

/** Only failures have the text of an error. */
function ofStatus({ status, error }: CallFilters): Driver | null {
  const unsuccessful = status ?? (error === undefined ? "success" : "failure");
  return unsuccessful === "success"
    ? null
    : driverOf(equal("l.status <> 'success' AND l.status = ?", unsuccessful));
}

/** The index of rows above a limit, if a filter asks for no others. */
function above(
  condition: string,
  value: number | undefined,
  limit: number,
): Driver | null {
  return value !== undefined && value >= limit
    ? { branches: [(to) => to.and(condition)], condition: null }
    : null;
}

/** What the caller sees; null: everything. */
async function reachOf(admin: Admin): Promise<{
  readonly driver: Driver;
  readonly filter: Restrict;
} | null> {
  if (admin.reachesAll) {
    return null;
  }
  const { actor, pool, teams } = admin;
  const tokens = actor.token === null ? [] : await hashesOf(pool, actor.token);
  const branches = [
    ...(actor.userId === null ? [] : [equal("l.user_id = ?", actor.userId)]),
    ...tokens.map((token) => equal("l.api_key = ?", token)),
    ...[...actor.organizations].map((id) => equal("l.organization_id = ?", id)),
    ...teams.map((id) => equal("l.team_id = ?", id)),
  ];
  return {
    // A key may reach less than its user: the filter decides.
    driver: { branches, condition: null },
    filter: (to) =>
      keepReachable(to, admin, { prefix: "l.", key: "api_key" }, tokens),
  };
}

async function ofKey(admin: Admin, key: string): Promise<Driver> {
  return callsOfToken(admin, await tokenNamed(admin, key));
}

/** Only the calls of the caller's own key, or those with the master key. */
export async function ownRestrictions(admin: Admin): Promise<Restrictions> {
  const { caller } = admin;
  const driver =
    caller.kind === "key"
      ? await callsOfToken(admin, caller.token)
      : driverOf((to) => {
          to.and("l.user_id = ?", MASTER_USER);
          to.and("l.api_key IS NULL");
        });
  return {
    drivers: [driver],
    filters: [],
    fitsError: null,
    range: () => undefined,
  };
}

/** All rows of a key, under any of its hashes. */
async function callsOfToken(
  { pool }: Pick<Admin, "pool">,
  token: string,
): Promise<Driver> {
  const hashes = await hashesOf(pool, token);
  return {
    branches: hashes.map((hash) => equal("l.api_key = ?", hash)),
    condition: equal("l.api_key = ANY(?)", hashes),
  };
}
