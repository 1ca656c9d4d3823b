import type { Client } from "pg";
import { rowsOf } from "../backup/database.ts";
import { shortKeyHash } from "../gateway/key-hash.ts";
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

/** The payer of all calls. */
const GATEWAY = { kind: "gateway", name: "as a whole" };

/** A join of the display name (`n.name`) of an entity `key:…`, `user:…`, by its `e.kind` and `e.id`. */
export const NAMES_OF_BUDGETS =
  "LEFT JOIN report_names n ON n.kind = e.kind AND n.id = e.id";

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
    `SELECT e.kind, e.id, e.spend::text, e.max_budget::text AS budget, e.budget_reset_at AS resets, n.name
       FROM report_budgets e ${NAMES_OF_BUDGETS} WHERE e.max_budget IS NOT NULL
       ORDER BY CASE WHEN e.max_budget = 0 THEN 0 ELSE e.spend / e.max_budget END DESC, e.kind, e.id LIMIT ${MAX_ROWS}`,
  );
  return rows.map(({ kind, id, name, spend, budget, resets }) => ({
    ...(kind === "proxy"
      ? GATEWAY
      : { kind: kind.replaceAll("_", " "), name: name ?? shortKeyHash(id) }),
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
    `SELECT e.at, e.entity, e.spend::text AS spend, n.name
       FROM (SELECT *, split_part(entity, ':', 1) AS kind, substr(entity, strpos(entity, ':') + 1) AS id FROM report_corrections) e
       ${NAMES_OF_BUDGETS} WHERE e.day BETWEEN $1 AND $2 ORDER BY e.at DESC LIMIT ${MAX_ROWS}`,
    [from, until],
  );
  return rows.map(({ at, entity, name, spend }) => ({
    at: at.toISOString(),
    name: nameOf(entity, name),
    spend: Number(spend),
  }));
}

/** "key ann", "team crew". */
export function nameOf(entity: string, name: string | null): string {
  if (entity === "proxy:") {
    return `${GATEWAY.kind} ${GATEWAY.name}`;
  }
  const colon = entity.indexOf(":");
  const kind = entity.slice(0, colon).replaceAll("_", " ");
  return `${kind} ${name ?? shortKeyHash(entity.slice(colon + 1))}`;
}
