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
import { EVER } from "../calls/calls-view.ts";

/** What the page of a key and `hearth keys show` show. */
export interface KeyFacts {
  readonly key: UsedKeyRow;
  readonly usage: KeyUsage;
  /** Of the last 24 hours. */
  readonly refusals: Refusals;
  /** The latest, newest first. */
  readonly calls: readonly Call[];
  /** IANA name. */
  readonly timeZone: string;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** Enough for a 95th percentile. */
const READ_CALLS = 100;
/** Enough to find the latest message of each reason. */
const READ_REFUSALS = 100;

export async function readKeyFacts(
  api: AdminApi,
  key: UsedKeyRow,
  timeZone: string,
): Promise<KeyFacts> {
  const { token } = key;
  const [usage, rejected, last] = await Promise.all([
    api.ask("GET", `/key/usage?key=${token}`),
    api.ask("GET", `/refusals?api_key=${token}&page_size=${READ_REFUSALS}`),
    api.ask(
      "GET",
      `/spend/logs/v2?api_key=${token}&page_size=${READ_CALLS}&count_up_to=0&start_date=${EVER.from}&end_date=${EVER.until}`,
    ),
  ]);
  return {
    key,
    timeZone,
    now: Date.now(),
    usage: keyUsage.parse(usage),
    refusals: refusals.parse(rejected),
    calls: callPage.parse(last).data,
  };
}
