import { ledgerRow } from "../servers/admin.ts";
import type { SpendRow } from "../../gateway/ledger/rows.ts";

const DAY_MS = 86_400_000;
const STATUSES = ["success", "success", "success", "failure", "interrupted"];

/** Numbers that look like chance and are the same each time: 0 to below 1. */
function evenNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Rows of a ledger: calls of `days` days up to `last` (UTC), some unpriced, failed, interrupted or cached, and corrections. */
export function yearOfSpend(
  last: number,
  days: number,
  callsADay: number,
): readonly SpendRow[] {
  const chance = evenNumbers(7);
  const among = <T>(all: readonly T[]): T =>
    all[Math.floor(chance() * all.length)] as T;
  const rows: SpendRow[] = [];
  for (let day = days - 1; day >= 0; day -= 1) {
    const midnight = last - day * DAY_MS;
    for (let call = 0; call < callsADay; call += 1) {
      const status = among(STATUSES) as SpendRow["status"];
      const cached = status === "success" && chance() < 0.2;
      const unpriced = !cached && chance() < 0.1;
      const cost = Number((chance() * 0.07).toFixed(9));
      rows.push(
        ledgerRow({
          ended_at: new Date(midnight + chance() * (DAY_MS - 1)).toISOString(),
          status,
          api_key: among(["a", "b", "c"]).repeat(64),
          user_id: among(["ada", "bob", null]),
          team_id: among(["kitchen", null]),
          tags: among([null, ["home"], ["home", "work"]]),
          model_group: among([
            "chat-large",
            "chat-small",
            "embed",
            "sonnet",
            "vision",
          ]),
          provider: among(["openai", "anthropic"]),
          spend: cached || unpriced || status === "failure" ? 0 : cost,
          saved: cached ? cost : 0,
          unpriced,
          cache_hit: cached,
          prompt_tokens: Math.floor(chance() * 1000),
          completion_tokens: Math.floor(chance() * 500),
        }),
      );
    }
    if (day % 40 === 0) {
      rows.push(
        ledgerRow({
          ended_at: new Date(midnight + DAY_MS / 2).toISOString(),
          call_type: "adjustment",
          payer: `user:${among(["ada", "bob"])}`,
          model_group: null,
          model: null,
          provider: null,
          prompt_tokens: 0,
          completion_tokens: 0,
          spend: Number((chance() - 0.5).toFixed(6)),
        }),
      );
    }
  }
  return rows;
}
