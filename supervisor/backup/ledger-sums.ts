import type { Client } from "pg";
import { z } from "zod";
import { rowsOf } from "./database.ts";

/** Sums of the ledger, which a restore must reproduce exactly. Dollars as decimal text. */
export const ledgerSumsSchema = z
  .strictObject({
    calls: z.string(),
    spend: z.string(),
    corrections: z.string(),
    archived: z.string(),
    daily: z.string(),
    totals: z.string(),
    keys: z.string(),
  })
  .readonly();
type LedgerSums = z.output<typeof ledgerSumsSchema>;

/** Adds up the ledger of the database that the client is connected to. */
export async function sumLedger(client: Client): Promise<LedgerSums> {
  const [sums] = await rowsOf<LedgerSums>(
    client,
    `SELECT
       (SELECT count(*) FROM spend_log)::text AS calls,
       (SELECT coalesce(sum(spend), 0) FROM spend_log WHERE payer IS NULL)::text AS spend,
       (SELECT coalesce(sum(spend), 0) FROM spend_log WHERE payer IS NOT NULL)::text AS corrections,
       (SELECT coalesce(sum(spend), 0) FROM spend_archive)::text AS archived,
       (SELECT coalesce(sum(spend), 0) FROM daily_spend)::text AS daily,
       (SELECT coalesce(sum(spend), 0) FROM spend_totals)::text AS totals,
       (SELECT count(*) FROM keys)::text AS keys`,
  );
  return ledgerSumsSchema.parse(sums);
}
