import type { AdminApi } from "../../../supervisor/gateway/admin-api.ts";
import type { UsedKeyRow } from "../../../supervisor/gateway/rows.ts";
import {
  calls,
  keyUsage,
  refusals,
  type Call,
  type KeyUsage,
  type Refusals,
} from "../../../supervisor/gateway/usage.ts";

/** What the page of a key and `hearth keys show` show. */
export interface KeyFacts {
  readonly key: UsedKeyRow;
  readonly usage: KeyUsage;
  /** Of the last 24 hours. */
  readonly refusals: Refusals;
  readonly calls: readonly Call[];
  /** IANA name. */
  readonly timeZone: string;
  /** Milliseconds since 1970. */
  readonly now: number;
}

const SHOWN_CALLS = 10;
const SHOWN_REFUSALS = 20;

export async function readKeyFacts(
  api: AdminApi,
  key: UsedKeyRow,
  timeZone: string,
): Promise<KeyFacts> {
  const { token } = key;
  const [usage, rejected, last] = await Promise.all([
    api.ask("GET", `/key/usage?key=${token}`),
    api.ask("GET", `/refusals?api_key=${token}&page_size=${SHOWN_REFUSALS}`),
    api.ask("GET", `/spend/logs?api_key=${token}&page_size=${SHOWN_CALLS}`),
  ]);
  return {
    key,
    timeZone,
    now: Date.now(),
    usage: keyUsage.parse(usage),
    refusals: refusals.parse(rejected),
    calls: calls.parse(last),
  };
}
