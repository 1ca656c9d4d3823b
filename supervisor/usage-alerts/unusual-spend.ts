import type { Client } from "pg";
import { DAY_MS } from "../../core/duration.ts";
import { shellWord } from "../../core/shell.ts";
import { money } from "../../core/words.ts";
import { ownedBy, type Alarm } from "../alerts/alarm.ts";
import { rowsOf } from "../backup/database.ts";
import { nameOf } from "../reports/budgets.ts";
import type { UsageAlertsConfig } from "./config.ts";
import { OnceAnHour } from "./once-an-hour.ts";

const COMPARED_DAYS = 28;
/** A younger key has no habits yet. */
const LEAST_AGE_MS = 7 * DAY_MS;

interface Spender extends Record<string, unknown> {
  readonly key: string;
  readonly name: string | null;
  readonly owner: string | null;
  readonly spend: string;
}

/** What a key spent at most in an hour at this time of the day; null while it is too young to tell. Dollars. */
type Usual = number | null;

/**
 * Finds keys that spent within the last hour several times as much as in any of the same hours of four weeks: an hour earlier
 * and later count as the same. The comparison is read once an hour for each key that spends enough.
 */
export class UnusualSpend {
  readonly #usual = new OnceAnHour<Usual>();

  async find(
    client: Client,
    { times, least }: UsageAlertsConfig["unusual_spend"],
    now: number,
  ): Promise<readonly Alarm[]> {
    const found: Alarm[] = [];
    for (const spender of await spendersOf(client, least, now)) {
      const { key } = spender;
      const usual = await this.#usual.get(key, now, () =>
        usualOf(client, key, now),
      );
      if (usual !== null && Number(spender.spend) > usual * times) {
        found.push(alarmOf(spender, usual));
      }
    }
    return found;
  }
}

/** Keys that spent at least this much within the last hour. */
function spendersOf(
  client: Client,
  least: number,
  now: number,
): Promise<readonly Spender[]> {
  return rowsOf<Spender>(
    client,
    `SELECT s.key, coalesce(k.key_alias, k.key_name) AS name, u.user_email AS owner, s.spend::text
       FROM (SELECT coalesce(r.token, c.api_key) AS key, sum(c.spend) AS spend
               FROM report_calls c LEFT JOIN report_rotated_keys r ON r.old_token = c.api_key
               WHERE c.started_at > $1::timestamptz - interval '3 hours' AND c.ended_at > $1::timestamptz - interval '1 hour'
                 AND c.ended_at <= $1 AND c.api_key IS NOT NULL
               GROUP BY 1 HAVING sum(c.spend) >= $2) s
       JOIN report_keys k ON k.token = s.key LEFT JOIN report_users u USING (user_id) ORDER BY s.spend DESC`,
    [new Date(now), least],
  );
}

async function usualOf(
  client: Client,
  key: string,
  now: number,
): Promise<Usual> {
  const [row] = await rowsOf<{ first: Date | null; most: string }>(
    client,
    `WITH hashes AS (SELECT $1 AS hash UNION ALL SELECT old_token FROM report_rotated_keys WHERE token = $1),
       days AS (SELECT $2::timestamptz - each * interval '1 day' AS moment FROM generate_series(1, ${COMPARED_DAYS}) each)
     SELECT (SELECT min(started_at) FROM report_calls WHERE api_key IN (SELECT hash FROM hashes)) AS first,
       coalesce((SELECT max(hourly.spend) FROM days CROSS JOIN LATERAL (
         SELECT sum(spend) AS spend FROM report_calls
           WHERE api_key IN (SELECT hash FROM hashes)
             AND started_at > moment - interval '2 hours' AND started_at <= moment + interval '1 hour'
           GROUP BY date_bin('1 hour', started_at, moment)) hourly), 0)::text AS most`,
    [key, new Date(now)],
  );
  const first = row?.first?.getTime() ?? now;
  return now - first < LEAST_AGE_MS ? null : Number(row?.most);
}

function alarmOf({ key, name, owner, spend }: Spender, usual: number): Alarm {
  const subject = nameOf(`key:${key}`, name);
  return {
    fingerprint: `unusual-spend:${key}`,
    level: "warning",
    subject,
    text: `${money(Number(spend))} spent within an hour; at this time of the day at most ${money(usual)} in four weeks`,
    command: `hearth keys block ${shellWord(name ?? key)}`,
    ...ownedBy(owner),
  };
}
