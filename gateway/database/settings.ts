import { LIFETIME, windowAt } from "../ledger/budget-windows.ts";
import { query, transaction, type Client, type Pool } from "./pool.ts";
import { lockLedger, seedWindows, type Windowing } from "./totals.ts";

/**
 * Another time zone, or another budget duration of the whole proxy, than at the last start means other windows: they are
 * summed from the ledger before the first call asks for them. Throws {@link DatabaseUnavailable}.
 */
export async function followSettings(
  pool: Pool,
  windowing: Windowing,
  now: number,
): Promise<void> {
  await transaction(pool, async (client) => {
    await lockLedger(client);
    const before = await readSettings(client);
    const { timeZone, proxyDuration } = windowing;
    const sameZone = before.get("time_zone") === timeZone;
    if (sameZone && (before.get("proxy_duration") ?? null) === proxyDuration) {
      return;
    }
    const budgets = sameZone ? [] : await budgetsWithWindows(client);
    const proxy = { entity: "proxy:", budget_duration: proxyDuration };
    await seedWindows(
      client,
      [...budgets, proxy]
        .map(({ entity, budget_duration: duration }) => ({
          entity,
          window: windowAt(duration, now, timeZone),
        }))
        .filter(({ window }) => window !== LIFETIME),
      timeZone,
    );
    await query(
      client,
      `INSERT INTO ledger_settings (name, value) VALUES ('time_zone', $1), ('proxy_duration', $2)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      [timeZone, proxyDuration],
    );
  });
}

/** Records the budget of the whole proxy for reports; dollars. */
export async function recordProxyBudget(
  pool: Pool,
  dollars: number | null,
): Promise<void> {
  await query(
    pool,
    `INSERT INTO ledger_settings (name, value) VALUES ('proxy_budget', $1)
       ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    [dollars === null ? null : String(dollars)],
  );
}

async function readSettings(
  client: Client,
): Promise<ReadonlyMap<string, string | null>> {
  const rows = await query<{ name: string; value: string | null }>(
    client,
    "SELECT name, value FROM ledger_settings",
  );
  return new Map(rows.map(({ name, value }) => [name, value]));
}

function budgetsWithWindows(client: Client) {
  return query<{ entity: string; budget_duration: string }>(
    client,
    "SELECT entity, budget_duration FROM entity_budgets WHERE budget_duration IS NOT NULL",
  );
}
