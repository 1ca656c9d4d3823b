import type { Client } from "pg";
import { rowsOf } from "../backup/database.ts";
import type { Period } from "./period.ts";

export interface Budget {
  readonly kind: string;
  readonly name: string;
  readonly spend: number;
  readonly budget: number;
  /** 1 is the whole budget; more if it was exceeded or lowered. Null for a budget of zero. */
  readonly used: number | null;
  /** ISO text; null for a budget that never resets. */
  readonly resetsAt: string | null;
}

/** Spend that an admin set. */
export interface Correction {
  /** ISO text. */
  readonly at: string;
  readonly name: string;
  readonly spend: number;
}

const MAX_ROWS = 5000;

/** The display name of an entity `key:…`, `user:…` (`e.entity`). */
export const ENTITY_NAME = `CASE split_part(e.entity, ':', 1)
  WHEN 'key' THEN (SELECT coalesce(key_alias, key_name) FROM report_keys WHERE 'key:' || token = e.entity)
  WHEN 'user' THEN (SELECT coalesce(user_alias, user_email, user_id) FROM report_users WHERE 'user:' || user_id = e.entity)
  WHEN 'team' THEN (SELECT coalesce(team_alias, team_id) FROM report_teams WHERE 'team:' || team_id = e.entity)
  END`;

/** Fullest first. */
export async function readBudgets(client: Client): Promise<readonly Budget[]> {
  const rows = await rowsOf<{
    kind: string;
    id: string;
    name: string | null;
    spend: string;
    budget: string;
    resets: Date | null;
  }>(
    client,
    `SELECT kind, id, spend::text, max_budget::text AS budget, budget_reset_at AS resets, name FROM (
       SELECT e.*, coalesce(k.key_alias, k.key_name, u.user_alias, u.user_email, t.team_alias) AS name
         FROM report_budgets e
         LEFT JOIN report_keys k ON e.kind = 'key' AND k.token = e.id
         LEFT JOIN report_users u ON e.kind = 'user' AND u.user_id = e.id
         LEFT JOIN report_teams t ON e.kind = 'team' AND t.team_id = e.id
         WHERE e.max_budget IS NOT NULL) b
       ORDER BY CASE WHEN max_budget = 0 THEN 0 ELSE spend / max_budget END DESC, kind, id LIMIT ${MAX_ROWS}`,
  );
  return rows.map(({ kind, id, name, spend, budget, resets }) => ({
    kind: kind.replaceAll("_", " "),
    name: name ?? shortened(id),
    spend: Number(spend),
    budget: Number(budget),
    used: Number(budget) === 0 ? null : Number(spend) / Number(budget),
    resetsAt: resets?.toISOString() ?? null,
  }));
}

/** Newest first. */
export async function readCorrections(
  client: Client,
  { from, until }: Period,
): Promise<readonly Correction[]> {
  const rows = await rowsOf<{
    at: Date;
    entity: string;
    name: string | null;
    spend: string;
  }>(
    client,
    `SELECT e.at, e.entity, e.spend::text AS spend, ${ENTITY_NAME} AS name
       FROM report_corrections e WHERE e.day BETWEEN $1 AND $2 ORDER BY e.at DESC LIMIT ${MAX_ROWS}`,
    [from, until],
  );
  return rows.map(({ at, entity, name, spend }) => ({
    at: at.toISOString(),
    name: nameOf(entity, name),
    spend: Number(spend),
  }));
}

/** "key ann", "team crew"; "everything" for the whole proxy. */
export function nameOf(entity: string, name: string | null): string {
  if (entity === "proxy:") {
    return "everything";
  }
  const colon = entity.indexOf(":");
  const kind = entity.slice(0, colon).replaceAll("_", " ");
  return `${kind} ${name ?? shortened(entity.slice(colon + 1))}`;
}

/** A hash is shown by its first characters. */
export function shortened(id: string): string {
  return /^[0-9a-f]{64}$/.test(id) ? `${id.slice(0, 8)}…` : id;
}
