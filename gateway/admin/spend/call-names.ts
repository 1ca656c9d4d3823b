import { nearest } from "../../../core/nearest.ts";
import { isKeyHash } from "../../access/keys.ts";
import { query } from "../../database/pool.ts";
import { CallError } from "../../http/errors.ts";
import type { Admin } from "../admin-route.ts";
import { tokenOf, tokensNow } from "../key-tokens.ts";

/** The names by which calls are searched. */
type NameParam = "key" | "user" | "team" | "model" | "provider" | "tag";

/** The hash of a key, by its hash, text or name. Throws 400 like the functions below. */
export async function tokenNamed(admin: Admin, key: string): Promise<string> {
  if (isKeyHash(key) || key.startsWith("sk-")) {
    const [token = tokenOf(key)] = await tokensNow(admin.pool, [key]);
    return token;
  }
  const [row] = await query<{ token: string }>(
    admin.pool,
    `SELECT token FROM keys WHERE key_alias = $1
       UNION ALL SELECT token FROM deleted_keys WHERE key_alias = $1 LIMIT 1`,
    [key],
  );
  return row?.token ?? unknown(admin, "key", key, KEYS);
}

/** The id of a user, by its id, email address or alias. */
export async function userNamed(admin: Admin, user: string): Promise<string> {
  const [row] = await query<{ id: string }>(
    admin.pool,
    `SELECT user_id AS id FROM users
       WHERE user_id = $1 OR lower(user_email) = lower($1) OR user_alias = $1 ORDER BY user_id <> $1 LIMIT 1`,
    [user],
  );
  return (
    row?.id ??
    (await ofRows(admin, "user_id", user)) ??
    unknown(admin, "user", user, USERS)
  );
}

/** The id of a team, by its id or alias. */
export async function teamNamed(admin: Admin, team: string): Promise<string> {
  const [row] = await query<{ id: string }>(
    admin.pool,
    "SELECT team_id AS id FROM teams WHERE team_id = $1 OR team_alias = $1 ORDER BY team_id <> $1 LIMIT 1",
    [team],
  );
  return (
    row?.id ??
    (await ofRows(admin, "team_id", team)) ??
    unknown(admin, "team", team, TEAMS)
  );
}

/** The id of a deleted user or team, whose rows stay. */
async function ofRows(
  { pool }: Admin,
  column: "user_id" | "team_id",
  id: string,
): Promise<string | null> {
  const rows = await query(
    pool,
    `SELECT FROM spend_log WHERE ${column} = $1 LIMIT 1`,
    [id],
  );
  return rows.length === 0 ? null : id;
}

const KEYS = "SELECT key_alias AS name FROM keys";
const USERS =
  "SELECT unnest(ARRAY[user_id, user_email, user_alias]) AS name FROM users";
const TEAMS = "SELECT unnest(ARRAY[team_id, team_alias]) AS name FROM teams";
const MODELS =
  "SELECT DISTINCT model_group AS name FROM daily_part_spend WHERE part = 'proxy'";
const PROVIDERS =
  "SELECT DISTINCT provider AS name FROM daily_part_spend WHERE part = 'proxy'";
const TAGS = "SELECT DISTINCT tag AS name FROM daily_tag_spend";

const MAX_NAMES = 10_000;

/**
 * Throws 400 for a name that nothing has, with a similar one. To those who do not see all, it is a name without calls: they
 * do not learn which names exist.
 */
async function unknown(
  admin: Admin,
  param: NameParam,
  value: string,
  names: string,
): Promise<string> {
  if (!admin.reachesAll) {
    return value;
  }
  const rows = await query<{ name: string }>(
    admin.pool,
    `SELECT name FROM (${names}) named WHERE name <> '' LIMIT ${MAX_NAMES}`,
  );
  const near = nearest(
    value,
    rows.map((row) => row.name),
  );
  throw new CallError(
    "invalid_request",
    `\`${param}\` ${JSON.stringify(value)} is unknown${near === undefined ? "" : ` (did you mean ${JSON.stringify(near)}?)`}.`,
    { param },
  );
}

/** Of a search that found nothing: throws 400 for a model, provider or tag that no call has ever had. */
export async function rejectUnused(
  admin: Admin,
  filters: Readonly<
    Partial<Record<"model" | "provider" | "tag", string | undefined>>
  >,
): Promise<void> {
  const names = { model: MODELS, provider: PROVIDERS, tag: TAGS } as const;
  for (const param of ["model", "provider", "tag"] as const) {
    const value = filters[param];
    if (
      value !== undefined &&
      !(param === "model" && admin.gateway.catalog.find(value) !== null) &&
      !(await isUsed(admin, names[param], value))
    ) {
      await unknown(admin, param, value, names[param]);
    }
  }
}

async function isUsed(
  { pool }: Admin,
  names: string,
  value: string,
): Promise<boolean> {
  const rows = await query(
    pool,
    `SELECT FROM (${names}) named WHERE name = $1 LIMIT 1`,
    [value],
  );
  return rows.length > 0;
}

/** The names of a key, user and team that a search gives by hash and id; null: it names none so, or it has no name. */
export async function chosenNames(
  { pool }: Pick<Admin, "pool">,
  { key, user, team }: Readonly<Partial<Record<NameParam, string | undefined>>>,
): Promise<{
  readonly key: string | null;
  readonly user: string | null;
  readonly team: string | null;
}> {
  const [row] =
    (key ?? user ?? team) === undefined
      ? []
      : await query<{
          key: string | null;
          user: string | null;
          team: string | null;
        }>(
          pool,
          `SELECT (SELECT key_alias FROM keys WHERE token = $1) AS key,
              (SELECT coalesce(user_alias, user_email) FROM users WHERE user_id = $2) AS "user",
              (SELECT team_alias FROM teams WHERE team_id = $3) AS team`,
          [key ?? null, user ?? null, team ?? null],
        );
  return row ?? { key: null, user: null, team: null };
}

const NAMES_OF_DAYS = 30;
const MAX_SHOWN = 200;

/** Models and providers of recent calls, for the form of a search. */
export async function recentNames({ pool }: Pick<Admin, "pool">): Promise<{
  readonly models: readonly string[];
  readonly providers: readonly string[];
}> {
  const rows = await query<{ model_group: string; provider: string }>(
    pool,
    `SELECT DISTINCT model_group, provider FROM daily_part_spend
       WHERE part = 'proxy' AND id = '' AND day >= current_date - ${NAMES_OF_DAYS} LIMIT ${MAX_NAMES}`,
  );
  const distinct = (names: readonly string[]) =>
    [...new Set(names)]
      .filter((one) => one !== "")
      .toSorted()
      .slice(0, MAX_SHOWN);
  return {
    models: distinct(rows.map((row) => row.model_group)),
    providers: distinct(rows.map((row) => row.provider)),
  };
}
