import { MINUTE_MS } from "../../core/duration.ts";
import { Failure } from "../../core/failure.ts";
import { dayIn } from "../../core/words.ts";
import { rowsOf, withDatabase } from "../backup/database.ts";
import { openReadCache, type CacheLimits } from "./read-cache.ts";

/** The day of the ledger, as `2026-11-21`, at a time. */
export type LedgerDay = (at: number) => Promise<string>;

/** The zone changes only when the gateway starts with another configuration. */
const LIMITS: CacheLimits = { freshMs: MINUTE_MS, staleMs: 15 * MINUTE_MS };
const READ_TIMEOUT_MS = 10_000;

/**
 * The ledger's days begin in the time zone of the gateway; as long as that is unknown, because Postgres does not answer or the gateway
 * has not started yet, in `timeZone`.
 */
export function openLedgerDay(
  databaseUrl: () => string | undefined,
  timeZone: string,
  now: () => number,
): LedgerDay {
  const cache = openReadCache(now);
  return async (at) => {
    const url = databaseUrl();
    const zone =
      url === undefined
        ? null
        : await cache("zone", LIMITS, () => readZone(url)).catch(unknown);
    return dayIn(zone?.value ?? timeZone, at);
  };
}

function readZone(url: string): Promise<string | undefined> {
  const signal = AbortSignal.timeout(READ_TIMEOUT_MS);
  return withDatabase(url, signal, async (client) => {
    const [row] = await rowsOf<{ time_zone: string }>(
      client,
      "SELECT time_zone FROM report_time_zone",
    );
    return row?.time_zone;
  });
}

function unknown(error: unknown): null {
  if (error instanceof Failure) {
    return null;
  }
  throw error;
}
