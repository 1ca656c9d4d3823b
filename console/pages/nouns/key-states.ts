import type { Look } from "../../../core/shapes.ts";
import type { UsedKeyRow } from "../../../supervisor/gateway/rows.ts";

/** How a key's state is told, each with a shape of its own. */
export const keyStateWords: Readonly<
  Record<UsedKeyRow["state"], { readonly look: Look; readonly word: string }>
> = {
  active: { look: "ok", word: "works" },
  over_budget: { look: "warn", word: "budget used up" },
  blocked: { look: "rest", word: "blocked" },
  expired: { look: "bad", word: "expired" },
};
