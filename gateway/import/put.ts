import { audit } from "../admin/audit.ts";
import { entityOf, type Kind } from "../admin/payers.ts";
import type { SpendSetting } from "../db/adjustments.ts";
import { query, type Client } from "../db/pool.ts";
import { insertRow, type Row } from "../db/rows.ts";
import { textOf } from "./convert.ts";
import type { Notes } from "./notes.ts";
import type { Source } from "./source.ts";

export const ACTOR = "import from litellm";

/** What every part of the import works with. */
export interface Bringing {
  readonly client: Client;
  readonly source: Source;
  readonly notes: Notes;
  /** Spends of what was brought in this run. */
  readonly spends: SpendSetting[];
}

/** Puts one row in, if it is new; notes its spend. */
export async function put(
  { client, notes, spends }: Bringing,
  of: Kind,
  plural: string,
  row: Row,
  spend: unknown = 0,
): Promise<void> {
  const fields = Object.fromEntries(
    Object.entries({ ...row, created_by: ACTOR, updated_by: ACTOR }).filter(
      ([, value]) => value !== null && value !== undefined,
    ),
  );
  const made = await insertRow(
    client,
    of.table,
    fields,
    "ON CONFLICT DO NOTHING",
  );
  notes.count(plural, made === null ? "known" : "brought");
  if (made === null) return;
  const id = of.id.map((column) => String(made[column])).join("/");
  await audit(client, ACTOR, "created", of.noun, id, null, made);
  const dollars = Number(spend ?? 0);
  if (of.entity !== null && dollars > 0)
    spends.push({ entity: entityOf(of, made), dollars: String(dollars) });
}

/** Ids of what is there now, older than the import or not. */
export async function idsOf(
  client: Client,
  { table, id }: Kind,
): Promise<ReadonlySet<string>> {
  const rows = await query<{ id: string }>(
    client,
    `SELECT ${id[0]} AS id FROM ${table}`,
  );
  return new Set(rows.map((row) => row.id));
}

/** A row whose tier is gone is brought without it. */
export function withKnownTier(
  { notes }: Bringing,
  tiers: ReadonlySet<string>,
  plural: string,
  name: string,
  row: Row,
): Row {
  const tier = textOf(row["budget_id"]);
  if (tier === null || tiers.has(tier)) return row;
  notes.changed(plural, name, "its tier is not there any more");
  return { ...row, budget_id: null };
}
