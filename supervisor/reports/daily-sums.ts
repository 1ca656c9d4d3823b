import type { Client } from "pg";
import { rowsOf, withDatabase } from "../backup/database.ts";
import { addUp, SUM_COLUMNS, sumsIn, type Sums } from "./sums.ts";

/** Sums of the calls of one day, alias and provider. */
export interface CallSums {
  readonly day: string;
  readonly alias: string;
  readonly provider: string;
  readonly sums: Sums;
}

/** Sums of the calls of one payer, alias or provider. */
export interface NamedSums {
  /** Empty for calls without one. */
  readonly id: string;
  /** Its display name, if any. */
  readonly name: string | null;
  readonly sums: Sums;
}

export type PayerKind = "key" | "user" | "team";

/** Dollars of one payer on one day. */
export interface DaySpend {
  readonly day: string;
  readonly id: string;
  readonly spend: number;
}

/** The alias of a call; without a known one, its model. */
const ALIAS = "coalesce(nullif(model_group, ''), model)";

/** The columns of report_daily_payer_spend that identify payers. */
const payerColumns: Readonly<Record<PayerKind, string>> = {
  user: "user_id",
  key: "api_key",
  team: "team_id",
};

/** Reads the gateway's report views in one snapshot, as the role supervisor. Throws a Failure if Postgres cannot be reached. */
export function inSnapshot<T>(
  databaseUrl: string,
  signal: AbortSignal,
  read: (client: Client) => Promise<T>,
): Promise<T> {
  return withDatabase(databaseUrl, signal, async (client) => {
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    // Ten thousand keys are summed up in memory; with the usual 4 MB they would be sorted on disk, which takes twice as long.
    await client.query("SET LOCAL work_mem = '64MB'");
    return read(client);
  });
}

export async function readCallSums(
  client: Client,
  from: string,
  until: string,
): Promise<readonly CallSums[]> {
  const rows = await rowsOf<{ day: string; alias: string; provider: string }>(
    client,
    `SELECT day::text, ${ALIAS} AS alias, provider, ${SUM_COLUMNS}
       FROM report_daily_part_spend WHERE part = 'proxy' AND day BETWEEN $1 AND $2 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`,
    [from, until],
  );
  return rows.map((row) => ({
    day: row.day,
    alias: row.alias,
    provider: row.provider,
    sums: sumsIn(row),
  }));
}

export async function readPayerSums(
  client: Client,
  kind: PayerKind,
  from: string,
  until: string,
): Promise<readonly NamedSums[]> {
  const rows = await rowsOf<{ id: string; name: string | null }>(
    client,
    `SELECT s.*, n.name
       FROM (SELECT ${payerColumns[kind]} AS id, ${SUM_COLUMNS}
               FROM report_daily_payer_spend WHERE day BETWEEN $1 AND $2 GROUP BY 1) s
       LEFT JOIN report_names n ON n.kind = $3 AND n.id = s.id`,
    [from, until, kind],
  );
  return rows.map((row) => ({ id: row.id, name: row.name, sums: sumsIn(row) }));
}

/** The days of some payers. */
export async function readDaySpend(
  client: Client,
  kind: PayerKind,
  ids: readonly string[],
  from: string,
  until: string,
): Promise<readonly DaySpend[]> {
  const id = payerColumns[kind];
  const rows = await rowsOf<{ day: string; id: string; spend: string }>(
    client,
    `SELECT day::text, ${id} AS id, sum(spend)::text AS spend
       FROM report_daily_payer_spend WHERE day BETWEEN $1 AND $2 AND ${id} = ANY ($3) GROUP BY 1, 2`,
    [from, until, ids],
  );
  return rows.map((row) => ({ ...row, spend: Number(row.spend) }));
}

export function sumOf(all: readonly { readonly sums: Sums }[]): Sums {
  return addUp(all.map(({ sums }) => sums));
}

/** The same sums grouped by only alias, provider or day. */
export function groupCalls(
  calls: readonly CallSums[],
  by: "alias" | "provider" | "day",
): readonly NamedSums[] {
  const groups = new Map<string, Sums[]>();
  for (const call of calls) {
    const group = groups.get(call[by]);
    if (group === undefined) {
      groups.set(call[by], [call.sums]);
    } else {
      group.push(call.sums);
    }
  }
  return [...groups].map(([id, all]) => ({ id, name: id, sums: addUp(all) }));
}

/** Adds the sums of the same payers over consecutive days. */
export function joinPayers(
  parts: readonly (readonly NamedSums[])[],
): readonly NamedSums[] {
  const joined = new Map<string, NamedSums>();
  for (const each of parts.flat()) {
    const before = joined.get(each.id);
    joined.set(
      each.id,
      before === undefined
        ? each
        : {
            id: each.id,
            name: each.name ?? before.name,
            sums: addUp([before.sums, each.sums]),
          },
    );
  }
  return [...joined.values()];
}
