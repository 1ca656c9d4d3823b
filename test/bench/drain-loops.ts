import { randomUUID } from "node:crypto";
import { pino } from "pino";
import { recordRows } from "../../gateway/database/ledger.ts";
import {
  createPool,
  DatabaseUnavailable,
  query,
  type Pool,
} from "../../gateway/database/pool.ts";
import type { SpendRow } from "../../gateway/ledger/rows.ts";
import { LIFETIME } from "../../gateway/ledger/budget-windows.ts";
import { rounded } from "./measure.ts";
import { postgresCpu } from "./postgres-cpu.ts";

/** What Postgres does for the drains of several instances at once, as `--json` prints it. */
export interface Drains {
  readonly loops: number;
  readonly rows_per_second: number;
  /** Processor time of Postgres; null without /proc. */
  readonly postgres_ms_per_row: number | null;
  /** Batches that were given up because the wait for the ledger lock was too long. */
  readonly gave_up: number;
}

const BATCH_ROWS = 1_000;
const KEYS_PER_LOOP = 8;
const WARMUP_MS = 500;

const silent = pino({ level: "silent" });

/** As many drains at once as there are `loops`, each of full batches, without gateways. */
export async function measureDrains(
  databaseUrl: string,
  loops: number,
  seconds: number,
): Promise<Drains> {
  const pools = Array.from({ length: loops }, () =>
    createPool(databaseUrl, 1, silent),
  );
  try {
    const [first] = pools;
    const cpu = first === undefined ? null : await postgresCpu(first);
    await runAll(pools, WARMUP_MS);
    const cpuBefore = cpu?.() ?? 0;
    const startedAt = performance.now();
    const sums = await runAll(pools, seconds * 1_000);
    const elapsed = (performance.now() - startedAt) / 1_000;
    return {
      loops,
      rows_per_second: Math.round(sums.rows / elapsed),
      postgres_ms_per_row:
        cpu === null ? null : rounded((cpu() - cpuBefore) / sums.rows, 4),
      gave_up: sums.gaveUp,
    };
  } finally {
    await Promise.all(pools.map((pool) => pool.end()));
  }
}

async function runAll(pools: readonly Pool[], ms: number) {
  const until = performance.now() + ms;
  const sums = { rows: 0, gaveUp: 0 };
  await Promise.all(
    pools.map(async (pool, loop) => {
      while (performance.now() < until) {
        const taken = await drain(pool, loop);
        sums.rows += taken ? BATCH_ROWS : 0;
        sums.gaveUp += taken ? 0 : 1;
      }
    }),
  );
  return sums;
}

/** False: the wait for the lock was too long. */
async function drain(pool: Pool, loop: number): Promise<boolean> {
  const rows = Array.from({ length: BATCH_ROWS }, (_, at) => rowOf(loop, at));
  const counters = Array.from({ length: KEYS_PER_LOOP }, (_, key) => ({
    entity: `key:${keyOf(loop, key)}`,
    window: LIFETIME.name,
  }));
  try {
    await recordRows(pool, rows, counters, null, "UTC");
    return true;
  } catch (error) {
    if (error instanceof DatabaseUnavailable) {
      return false;
    }
    throw error;
  }
}

function keyOf(loop: number, key: number): string {
  return `${"0".repeat(58)}${loop}-${key}`;
}

function rowOf(loop: number, at: number): SpendRow {
  const now = new Date().toISOString();
  const key = at % KEYS_PER_LOOP;
  const model = at % 4;
  return {
    request_id: randomUUID(),
    started_at: now,
    ended_at: now,
    completion_started_at: null,
    day: now.slice(0, "2026-01-01".length),
    call_type: "acompletion",
    status: "success",
    payer: null,
    api_key: keyOf(loop, key),
    user_id: `drain-user-${loop}-${key}`,
    user_pays: true,
    team_id: `drain-team-${loop % 4}`,
    organization_id: "drain-organization",
    end_user: null,
    tags: null,
    model_group: `alias-${model}`,
    model_id: `deployment-${model}`,
    model: `model-${model}`,
    provider: "openai",
    spend: 0.000123,
    saved: 0,
    unpriced: false,
    prompt_tokens: 100,
    completion_tokens: 50,
    cached_tokens: 0,
    cache_write_tokens: 0,
    cache_hit: false,
    cache_key: "0".repeat(64),
    response_id: `chatcmpl-${randomUUID()}`,
    session_id: null,
    requester_ip: "127.0.0.1",
    metadata: null,
  };
}

/** Differences between sums and rows; 0 when all agree. */
export async function countDifferences(pool: Pool): Promise<number> {
  const [found] = await query<{ count: number }>(
    pool,
    "SELECT count(*) FROM spend_check",
  );
  return found?.count ?? 0;
}
