import { momentFrom, money } from "../core/words.ts";
import { viewBudget, type Budgeted } from "../console/pages/nouns/budget.ts";
import type { Cell } from "./terminal.ts";

export const BUDGET_HEADINGS = ["spent", "used", "resets"] as const;

/** Spend against a budget: the amounts, the used share and the next reset. */
export function budgetCells(row: Budgeted): readonly Cell[] {
  const now = Date.now();
  const { share, look } = viewBudget(row, zoneHere(), now);
  const { spend, budget_in_force: budget, budget_reset_at: reset } = row;
  return [
    {
      text:
        budget === null ? money(spend) : `${money(spend)} of ${money(budget)}`,
      right: true,
    },
    {
      text: share ?? "–",
      right: true,
      tone: look === "bad" || look === "warn" ? look : "plain",
    },
    {
      text:
        reset === null ? "–" : momentFrom(now, Date.parse(reset), zoneHere()),
      tone: "soft",
    },
  ];
}

/** IANA name of this machine's time zone. */
export function zoneHere(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}
