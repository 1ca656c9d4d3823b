import type { Look } from "../../../core/shapes.ts";
import { money, momentFrom, percent } from "../../../core/words.ts";

/** Spend against a budget, as a meter shows it. */
export interface BudgetView {
  /** "$ 4.10" */
  readonly spent: string;
  /** "of $ 5.00 (resets 1 Dec, 00:00)" */
  readonly against: string;
  readonly share: string | null;
  /** 0 to 100; null without a budget. */
  readonly meter: number | null;
  readonly look: Look;
}

/** What the gateway answers of every budget. */
export interface Budgeted {
  readonly spend: number;
  readonly budget_in_force: number | null;
  readonly budget_reset_at: string | null;
}

/** From this share on the meter warns. */
const NEARLY_USED = 0.8;
export const NEARLY_USED_WORD = "nearly used up";

export function viewBudget(
  row: Budgeted,
  timeZone: string,
  now: number,
): BudgetView {
  const { spend, budget_in_force: budget } = row;
  const reset =
    row.budget_reset_at === null
      ? ""
      : ` (resets ${momentFrom(now, Date.parse(row.budget_reset_at), timeZone)})`;
  if (budget === null) {
    return {
      spent: money(spend),
      against: "no budget",
      share: null,
      meter: null,
      look: "none",
    };
  }
  const share = budget === 0 ? 1 : spend / budget;
  return {
    spent: money(spend),
    against: `of ${money(budget)}${reset}`,
    share: percent(share),
    meter: Math.round(Math.min(1, Math.max(0, share)) * 1000) / 10,
    look: lookOf(share),
  };
}

function lookOf(share: number): Look {
  if (share >= 1) {
    return "bad";
  }
  return share >= NEARLY_USED ? "warn" : "ok";
}

/** Whether the larger part of a budget is used, so that a person should know. */
export function isNearlyUsed({
  spend,
  budget_in_force: budget,
}: Budgeted): boolean {
  return budget !== null && spend >= budget * NEARLY_USED;
}

/** The state of a user or a team. */
export function stateOfBudget(row: Budgeted & { readonly blocked?: unknown }): {
  readonly look: Look;
  readonly word: string;
} {
  const { spend, budget_in_force: budget } = row;
  if (row.blocked === true) {
    return { look: "rest", word: "blocked" };
  }
  if (budget === null) {
    return { look: "ok", word: "active" };
  }
  return spend >= budget
    ? { look: "warn", word: "over budget" }
    : isNearlyUsed(row)
      ? { look: "warn", word: NEARLY_USED_WORD }
      : { look: "ok", word: "within budget" };
}

export function spendHeading(
  title: string,
  { spent, against }: BudgetView,
  { budget_in_force: budget }: Budgeted,
): string {
  return `${title} has spent ${spent}${budget === null ? "" : ` ${against}`}.`;
}
