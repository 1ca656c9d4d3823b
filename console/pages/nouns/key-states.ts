import type { Look } from "../../../core/shapes.ts";
import type { UsedKeyRow } from "../../../supervisor/gateway/rows.ts";

/** The words and the shape of each state of a key. */
export const KEY_STATE_WORDS: Readonly<
  Record<UsedKeyRow["state"], { readonly look: Look; readonly word: string }>
> = {
  active: { look: "ok", word: "active" },
  over_budget: { look: "warn", word: "over budget" },
  blocked: { look: "rest", word: "blocked" },
  expired: { look: "bad", word: "expired" },
};
