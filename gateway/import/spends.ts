import { addSpend, adjustSpend } from "../database/adjustments.ts";
import { query, type Client } from "../database/pool.ts";
import type { Windowing } from "../database/totals.ts";

/** What a payer has spent at LiteLLM in its budget's window, as this run found it. */
export interface FoundSpend {
  /** Its name in the ledger when it was imported. */
  readonly name: string;
  /** Its name in the ledger now: a key may have a new secret. */
  readonly entity: string;
  readonly dollars: string;
  /** Imported by this run. */
  readonly isNew: boolean;
}

/** Marks the origin of the ledger's rows. */
export const REASON = { imported_from: "litellm" } as const;

const AT_ONCE = 500;

/** The payers imported by an earlier run, by their name in the ledger at that time. */
export async function importedBefore(
  client: Client,
): Promise<ReadonlySet<string>> {
  const rows = await query<{ entity: string }>(
    client,
    "SELECT entity FROM imported_spend",
  );
  return new Set(rows.map(({ entity }) => entity));
}

/**
 * Adds what payers spent at LiteLLM to their spend here: all of it for new payers, the increase since the previous run for
 * the others. A payer that existed here before its first import keeps its spend. Returns what was imported.
 */
export async function importSpends(
  client: Client,
  found: readonly FoundSpend[],
  windowing: Windowing,
  now: number,
): Promise<{ readonly payers: number; readonly dollars: number }> {
  const change = { reason: REASON, windowing, now };
  const imported: { readonly entity: string; readonly dollars: string }[] = [];
  for (let at = 0; at < found.length; at += AT_ONCE) {
    const some = found.slice(at, at + AT_ONCE);
    // Also those that spent nothing in this window: rows of earlier calls may have been imported before them.
    const fresh = some.filter(({ isNew }) => isNew);
    const since = await spentSince(client, some);
    if (fresh.length > 0) {
      // A window that a budget gets here later contains none of it: when it was spent is unknown.
      await adjustSpend(client, fresh, change, "from the start");
    }
    if (since.length > 0) {
      await addSpend(client, since, change);
    }
    await remember(client, some);
    imported.push(
      ...fresh.filter(({ dollars }) => Number(dollars) > 0),
      ...since,
    );
  }
  const ofKeys = imported.filter(({ entity }) => entity.startsWith("key:"));
  return {
    payers: imported.length,
    dollars: ofKeys.reduce((sum, { dollars }) => sum + Number(dollars), 0),
  };
}

/** The increase at LiteLLM since the previous run. A lower count means that a new window has started at 0. */
async function spentSince(client: Client, found: readonly FoundSpend[]) {
  const known = found.filter(({ isNew }) => !isNew);
  return query<{ entity: string; dollars: string }>(
    client,
    `SELECT f.entity, (CASE WHEN f.dollars < i.spend THEN f.dollars ELSE f.dollars - i.spend END)::text AS dollars
       FROM unnest($1::text[], $2::text[], $3::numeric[]) AS f(name, entity, dollars)
       JOIN imported_spend i ON i.entity = f.name
       WHERE f.dollars <> i.spend AND f.dollars > 0`,
    [
      known.map(({ name }) => name),
      known.map(({ entity }) => entity),
      known.map(({ dollars }) => dollars),
    ],
  );
}

async function remember(
  client: Client,
  found: readonly FoundSpend[],
): Promise<void> {
  await query(
    client,
    `INSERT INTO imported_spend AS i (entity, spend) SELECT DISTINCT ON (1) * FROM unnest($1::text[], $2::numeric[])
       ON CONFLICT (entity) DO UPDATE SET spend = excluded.spend, imported_at = now() WHERE i.spend <> excluded.spend`,
    [found.map(({ name }) => name), found.map(({ dollars }) => dollars)],
  );
}
