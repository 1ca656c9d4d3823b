import { setImmediate as nextTurn } from "node:timers/promises";
import type { SpendRow } from "../ledger/rows.ts";
import { carryLateSpend } from "./adjustments.ts";
import { insertRows } from "./insert-rows.ts";
import { moveMark, type MarkStep } from "./journal-marks.ts";
import { ensurePartitions, isPartitionMissing } from "./partitions.ts";
import { transaction, type Pool } from "./pool.ts";
import {
  limitLockWaits,
  readTotals,
  type SoftBudget,
  type Total,
} from "./totals.ts";
import { type Counter } from "../ledger/payers.ts";

/** Calls wait for totals while a drain waits: it retries instead. */
const DRAIN_LOCK_MS = 1_000;

export interface Recorded {
  /** Ids of the rows that were new. */
  readonly inserted: ReadonlySet<string>;
  readonly totals: readonly Total[];
  readonly softBudgets: readonly SoftBudget[];
}

/**
 * Brings rows into the ledger, once however often they are delivered, and adds the new ones to every sum, in one
 * transaction. Answers the totals of `counters`, and of other windows of their payers that changed, as committed. `mark`: the
 * journal's, moved in the same transaction; throws {@link LedgerBehind}.
 */
export async function recordRows(
  pool: Pool,
  delivered: readonly SpendRow[],
  counters: readonly Counter[],
  proxyDuration: string | null,
  timeZone: string,
  mark: MarkStep | null = null,
): Promise<Recorded> {
  const { rows, json } = await holdable(delivered);
  const record = () =>
    transaction(pool, async (client) => {
      await limitLockWaits(client, DRAIN_LOCK_MS);
      const windowing = { proxyDuration, timeZone };
      const { inserted, windows, softBudgets } = await insertRows(
        client,
        rows,
        windowing,
        json,
      );
      await carryLateSpend(
        client,
        rows.filter(({ request_id: id }) => inserted.has(id)),
        windowing,
      );
      const totals = await readTotals(client, counters);
      if (mark !== null) {
        await moveMark(client, mark);
      }
      return {
        inserted,
        softBudgets,
        totals: [...totals, ...othersOf(counters, windows)],
      };
    });
  try {
    return await record();
  } catch (error) {
    // Of a month whose partition retention has dropped, or that was not created ahead.
    if (!isPartitionMissing(error)) {
      throw error;
    }
    await ensurePartitions(pool, rows);
    return record();
  }
}

/** Windows of calls that were pending in another window, because their payer's duration changed meanwhile. */
function othersOf(
  counters: readonly Counter[],
  windows: readonly Total[],
): readonly Total[] {
  const entities = new Set(counters.map(({ entity }) => entity));
  const requested = new Set(
    counters.map(({ entity, window }) => `${entity}|${window}`),
  );
  return windows.filter(
    ({ entity, window }) =>
      entities.has(entity) && !requested.has(`${entity}|${window}`),
  );
}

/** Postgres cannot store NUL or half a surrogate pair in text; such characters come only from hostile input. */
const UNSTORABLE = /\\u(?:0000|d[89a-f])/i;

/** Rows written before yielding to calls. */
const ROWS_AT_ONCE = 50;

async function holdable(delivered: readonly SpendRow[]): Promise<{
  readonly rows: readonly SpendRow[];
  readonly json: string;
}> {
  const pieces: string[] = [];
  for (let at = 0; at < delivered.length; at += ROWS_AT_ONCE) {
    if (at > 0) {
      await nextTurn();
    }
    const piece = JSON.stringify(delivered.slice(at, at + ROWS_AT_ONCE));
    pieces.push(piece.slice(1, -1));
  }
  const written = `[${pieces.join(",")}]`;
  if (!written.includes("\\u") || !UNSTORABLE.test(written)) {
    return { rows: delivered, json: written };
  }
  const json = JSON.stringify(delivered, (_, value: unknown) =>
    typeof value === "string"
      ? value.toWellFormed().replaceAll("\0", "\uFFFD")
      : value,
  );
  return { rows: JSON.parse(json) as readonly SpendRow[], json };
}
