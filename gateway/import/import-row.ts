import { audit } from "../admin/audit.ts";
import { entityOf, idOf, type Kind } from "../admin/kinds/kind.ts";
import { type Client, query } from "../database/pool.ts";
import { findRows, insertRow, type Row } from "../database/rows.ts";
import { textOf } from "./convert.ts";
import type { Notes } from "./import-notes.ts";
import type { Source } from "./source.ts";
import type { FoundSpend } from "./spends.ts";

export const ACTOR = "import from litellm";

/** Context of all parts of the import. */
export interface ImportContext {
  readonly client: Client;
  readonly source: Source;
  readonly notes: Notes;
  /** Payers imported by an earlier run. */
  readonly before: ReadonlySet<string>;
  /** Spends found by this run. */
  readonly spends: FoundSpend[];
}

/** Inserts one row if it is new, and notes its spend. False: absent because it was deleted in Hearth. */
export async function importRow(
  context: ImportContext,
  of: Kind,
  plural: string,
  row: Row,
  spend: unknown = 0,
): Promise<boolean> {
  const { client, notes, spends } = context;
  const name = of.id.map((column) => String(row[column])).join("/");
  const shownName = textOf(row["key_name"]) ?? name;
  if (await wasDeleted(context, of, row)) {
    notes.left(plural, shownName, "imported earlier and deleted since");
    return false;
  }
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
  if (made === null && (await cameWithoutCount(context, of, row, spend))) {
    notes.changed(
      plural,
      shownName,
      "imported before imports recorded LiteLLM's spend: spend since then is not imported, spend from this run on is",
    );
  }
  if (made === null && (await wasBlockedSince(context, of, row))) {
    notes.changed(
      plural,
      shownName,
      "blocked at LiteLLM, but not here: block it here, too, unless it may continue",
    );
  }
  if (of.entity !== null) {
    spends.push({
      name: entityOf(of, row),
      entity: entityOf(of, row),
      dollars: dollarsOf(spend),
      isNew: made !== null,
    });
  }
  if (made !== null) {
    await audit(client, ACTOR, {
      action: "created",
      objectType: of.noun,
      objectId: name,
      before: null,
      after: made,
    });
  }
  return true;
}

/** Whether a payer was imported by an earlier run and deleted since: it must not be imported again. */
export async function wasDeleted(
  { client, before }: ImportContext,
  of: Kind,
  row: Row,
): Promise<boolean> {
  if (of.entity === null || !before.has(entityOf(of, row))) {
    return false;
  }
  return (await findRows(client, of.table, idOf(of, row))).length === 0;
}

/** Whether LiteLLM blocked what is open here: existing rows stay as they are. */
async function wasBlockedSince(
  { client }: ImportContext,
  of: Kind,
  row: Row,
): Promise<boolean> {
  if (row["blocked"] !== true) {
    return false;
  }
  const [known] = await findRows(client, of.table, idOf(of, row));
  return known?.["blocked"] === false;
}

/** Whether a payer with spend at LiteLLM was imported by a run that did not record the amount. */
async function cameWithoutCount(
  { client, before, spends }: ImportContext,
  of: Kind,
  row: Row,
  spend: unknown,
): Promise<boolean> {
  if (of.entity === null || dollarsOf(spend) === "0") {
    return false;
  }
  const entity = entityOf(of, row);
  // One run may name a membership twice.
  if (before.has(entity) || spends.some(({ name }) => name === entity)) {
    return false;
  }
  const [known] = await findRows(client, of.table, idOf(of, row));
  return known?.["created_by"] === ACTOR;
}

/** As the ledger takes them; LiteLLM's may be missing, and after its corrections below 0. */
export function dollarsOf(spend: unknown): string {
  const dollars = Number(spend ?? 0);
  return dollars > 0 && Number.isFinite(dollars) ? String(dollars) : "0";
}

/** Ids of existing rows, imported or not. */
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

/** A row whose tier no longer exists is imported without it. */
export function withKnownTier(
  { notes }: ImportContext,
  tiers: ReadonlySet<string>,
  plural: string,
  name: string,
  row: Row,
): Row {
  const tier = textOf(row["budget_id"]);
  if (tier === null || tiers.has(tier)) {
    return row;
  }
  notes.changed(plural, name, "its tier no longer exists");
  return { ...row, budget_id: null };
}
