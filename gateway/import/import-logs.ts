import { type ImportTask } from "./import-payers.ts";
import { storableName } from "../ledger/names.ts";
import { entitiesOfRow, type SpendRow } from "../ledger/rows.ts";
import { dayOf, windowAt } from "../ledger/budget-windows.ts";
import { addSpend, type SpendAddition } from "../database/adjustments.ts";
import { insertRows } from "../database/insert-rows.ts";
import { ensurePartitions } from "../database/partitions.ts";
import {
  query,
  transaction,
  type Client,
  type Pool,
} from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { durationsOf, lockLedger, type Windowing } from "../database/totals.ts";
import { listOf, objectOf, textOf } from "./convert.ts";
import type { LogPlace } from "./source.ts";
import { REASON } from "./spends.ts";

const BATCH_ROWS = 1_000;

/**
 * Imports rows of LiteLLM's spend log into the ledger, each once. Existing payers keep their spend: their budgets
 * include these calls. New payers get the spend of their rows, and with {@link importPayers} exactly LiteLLM's.
 */
export async function importLogs(
  pool: Pool,
  { source, notes, windowing, now }: ImportTask,
  progress: (rows: number) => void,
): Promise<void> {
  await ensurePartitions(pool, [{ started_at: new Date(now).toISOString() }]);
  let last: LogPlace | null = null;
  let sum = 0;
  for (;;) {
    const given: readonly Row[] = await source.logsAfter(last, BATCH_ROWS);
    const rows = given.map((row) => spendRowOf(row, windowing.timeZone));
    await ensurePartitions(pool, rows);
    const inserted = await transaction(pool, (client) =>
      insertKeepingSpends(client, rows, windowing, now),
    );
    for (const { request_id: id } of rows) {
      notes.count("spend log rows", inserted.has(id) ? "brought" : "known");
    }
    progress((sum += rows.length));
    const end = given.at(-1);
    if (given.length < BATCH_ROWS || end === undefined) {
      return;
    }
    last = { startTime: end["place"], requestId: end["request_id"] };
  }
}

async function insertKeepingSpends(
  client: Client,
  rows: readonly SpendRow[],
  windowing: Windowing,
  now: number,
): Promise<ReadonlySet<string>> {
  await lockLedger(client);
  const entities = [...new Set(rows.flatMap(entitiesOfRow))];
  // The whole proxy is no row of a table.
  const here = await query<{ entity: string }>(
    client,
    "SELECT entity FROM budgets_of($1) UNION SELECT 'proxy:' WHERE 'proxy:' = ANY($1)",
    [entities],
  );
  const durations = await durationsOf(client, entities, windowing);
  const windows = new Map(
    here.map(({ entity }) => [
      entity,
      windowAt(durations.get(entity) ?? null, now, windowing.timeZone),
    ]),
  );
  const { inserted } = await insertRows(client, rows, windowing);
  const counted = rows
    .filter(({ request_id: id }) => inserted.has(id))
    .flatMap((row) => {
      const at = Date.parse(row.ended_at);
      return entitiesOfRow(row)
        .map((entity) => ({ ...row, entity, window: windows.get(entity) }))
        .filter(
          ({ window }) =>
            window !== undefined && at >= window.start && at < window.end,
        );
    });
  await addSpend(client, await takenBack(client, counted), {
    reason: REASON,
    windowing,
    now,
  });
  return inserted;
}

/** What takes rows back from payers: day by day, so that no window in which a budget may count later has spent less than 0. */
async function takenBack(
  client: Client,
  rows: readonly (SpendRow & { readonly entity: string })[],
): Promise<readonly SpendAddition[]> {
  const days = await query<{ entity: string; dollars: string; first: Date }>(
    client,
    `SELECT entity, (-sum(spend))::text AS dollars, min(ended_at) AS first
       FROM unnest($1::text[], $2::numeric[], $3::date[], $4::timestamptz[]) AS r(entity, spend, day, ended_at)
       GROUP BY entity, day`,
    [
      rows.map(({ entity }) => entity),
      rows.map(({ spend }) => String(spend)),
      rows.map(({ day }) => day),
      rows.map(({ ended_at: at }) => at),
    ],
  );
  return days.map(({ first, ...day }) => ({ ...day, at: first.getTime() }));
}

function spendRowOf(row: Row, timeZone: string): SpendRow {
  const started = row["startTime"] as Date;
  const ended = new Date(
    Math.max(started.getTime(), (row["endTime"] as Date).getTime()),
  );
  const completion = row["completionStartTime"] as Date | null;
  const tags = listOf(row["request_tags"]).filter(
    (tag) => typeof tag === "string",
  );
  const id = String(row["request_id"]);
  const metadata = objectOf(row["metadata"]);
  const status = row["status"] === "failure" ? "failure" : "success";
  return {
    request_id: id,
    started_at: started.toISOString(),
    ended_at: ended.toISOString(),
    completion_started_at: completion?.toISOString() ?? null,
    day: dayOf(ended.getTime(), timeZone),
    call_type: textOf(row["call_type"]) ?? "acompletion",
    status,
    payer: null,
    api_key: nameOf(row["api_key"]),
    user_id: nameOf(row["user"]),
    user_pays: true,
    team_id: nameOf(row["team_id"]),
    organization_id: nameOf(row["organization_id"]),
    end_user: nameOf(row["end_user"]),
    tags: tags.length === 0 ? null : tags.map(storableName),
    model_group: nameOf(row["model_group"]) ?? nameOf(row["model"]),
    model_id: nameOf(row["model_id"]),
    model: nameOf(row["model"]),
    provider: nameOf(row["custom_llm_provider"]),
    spend: String(Number(row["spend"] ?? 0)),
    saved: 0,
    unpriced: false,
    prompt_tokens: Number(row["prompt_tokens"] ?? 0),
    completion_tokens: Number(row["completion_tokens"] ?? 0),
    cached_tokens: 0,
    cache_write_tokens: 0,
    cache_hit: String(row["cache_hit"]).toLowerCase() === "true",
    cache_key: textOf(row["cache_key"]),
    // LiteLLM's id of a call is the provider's id of its answer.
    response_id: id,
    session_id: textOf(row["session_id"]),
    requester_ip: textOf(row["requester_ip_address"]),
    metadata: {
      ...REASON,
      ...(metadata["error_information"] == null
        ? {}
        : { error_information: metadata["error_information"] }),
    },
  };
}

/** LiteLLM's names may be longer than the ledger holds. */
function nameOf(value: unknown): string | null {
  const name = textOf(value);
  return name === null ? null : storableName(name);
}
