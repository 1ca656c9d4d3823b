import { DAY_MS } from "../../core/duration.ts";
import { ledgerRow } from "../servers/admin.ts";
import type { SpendRow } from "../../gateway/ledger/rows.ts";

const STATUSES = ["success", "success", "success", "failure", "interrupted"];

/** A reproducible pseudo-random generator: 0 to below 1. */
function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Ledger rows: calls of `days` days up to `last` (UTC), some unpriced, failed, interrupted or cached, and adjustments. */
export function sampleLedger(
  last: number,
  days: number,
  callsPerDay: number,
): readonly SpendRow[] {
  const random = seededRandom(7);
  const pick = <T>(all: readonly T[]): T =>
    all[Math.floor(random() * all.length)] as T;
  const rows: SpendRow[] = [];
  for (let day = days - 1; day >= 0; day -= 1) {
    const midnight = last - day * DAY_MS;
    for (let call = 0; call < callsPerDay; call += 1) {
      const status = pick(STATUSES) as SpendRow["status"];
      const cached = status === "success" && random() < 0.2;
      const unpriced = !cached && random() < 0.1;
      const cost = Number((random() * 0.07).toFixed(9));
      rows.push(
        ledgerRow({
          ended_at: new Date(midnight + random() * (DAY_MS - 1)).toISOString(),
          status,
          api_key: pick(["a", "b", "c"]).repeat(64),
          user_id: pick(["ada", "bob", null]),
          team_id: pick(["kitchen", null]),
          tags: pick([null, ["home"], ["home", "work"]]),
          model_group: pick([
            "chat-large",
            "chat-small",
            "embed",
            "sonnet",
            "vision",
          ]),
          provider: pick(["openai", "anthropic"]),
          spend: cached || unpriced || status === "failure" ? 0 : cost,
          saved: cached ? cost : 0,
          unpriced,
          cache_hit: cached,
          prompt_tokens: Math.floor(random() * 1000),
          completion_tokens: Math.floor(random() * 500),
        }),
      );
    }
    if (day % 40 === 0) {
      rows.push(
        ledgerRow({
          ended_at: new Date(midnight + DAY_MS / 2).toISOString(),
          call_type: "adjustment",
          payer: `user:${pick(["ada", "bob"])}`,
          model_group: null,
          model: null,
          provider: null,
          prompt_tokens: 0,
          completion_tokens: 0,
          spend: Number((random() - 0.5).toFixed(6)),
        }),
      );
    }
  }
  return rows;
}
