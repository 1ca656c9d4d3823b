import type { AdminApi } from "../../../supervisor/gateway/admin-api.ts";
import type { UsedKeyRow } from "../../../supervisor/gateway/rows.ts";
import {
  callPage,
  keyUsage,
  refusals,
  type Call,
  type KeyUsage,
  type Refusals,
} from "../../../supervisor/gateway/usage.ts";

/** The use of a key, as the gateway answers it. */
export interface KeyUse {
  readonly usage: KeyUsage;
  /** Of the last 24 hours. */
  readonly refusals: Refusals;
  /** The latest, newest first. */
  readonly calls: readonly Call[];
}

/** What the page of a key and `hearth keys show` show. */
export interface KeyFacts extends KeyUse {
  readonly key: UsedKeyRow;
  /** IANA name. */
  readonly timeZone: string;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** The ledger is asked for a period: before the first call, and after the last. */
const EVER = { from: "2000-01-01", until: "2100-01-01" } as const;
/** Enough for a 95th percentile. */
const READ_CALLS = 100;
/** Enough to find the latest message of each reason. */
const READ_REFUSALS = 100;

/** `token`: the hash of the key. */
export async function readKeyUse(
  api: AdminApi,
  token: string,
): Promise<KeyUse> {
  const [usage, rejected, last] = await Promise.all([
    api.ask("GET", `/key/usage?key=${token}`),
    api.ask("GET", `/refusals?api_key=${token}&page_size=${READ_REFUSALS}`),
    api.ask(
      "GET",
      `/spend/logs/v2?api_key=${token}&page_size=${READ_CALLS}&count_up_to=0&start_date=${EVER.from}&end_date=${EVER.until}`,
    ),
  ]);
  return {
    usage: keyUsage.parse(usage),
    refusals: refusals.parse(rejected),
    calls: callPage.parse(last).data,
  };
}
