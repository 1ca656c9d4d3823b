import type { Look } from "../../../core/shapes.ts";
import { money, moment, percent } from "../../../core/words.ts";

/** What was spent of a budget, as a meter shows it. */
export interface BudgetView {
  /** "$ 4.10" */
  readonly spent: string;
  /** "of $ 5.00, until 1 Dec, 00:00" */
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

/** From here on somebody may want to know. */
const NEARLY_USED = 0.9;

export function viewBudget(row: Budgeted, timeZone: string): BudgetView {
  const { spend, budget_in_force: budget } = row;
  const until =
    row.budget_reset_at === null
      ? ""
      : `until ${moment(Date.parse(row.budget_reset_at), timeZone)}`;
  if (budget === null) {
    return {
      spent: money(spend),
      against: ["no budget", ...(until === "" ? [] : [until])].join(", "),
      share: null,
      meter: null,
      look: "none",
    };
  }
  const share = budget === 0 ? 1 : spend / budget;
  return {
    spent: money(spend),
    against: [`of ${money(budget)}`, ...(until === "" ? [] : [until])].join(
      ", ",
    ),
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

/** A user or a team as its list and its page tell it. */
export function stateOfBudget({
  spend,
  budget_in_force: budget,
  blocked,
}: Budgeted & { readonly blocked?: unknown }): {
  readonly look: Look;
  readonly word: string;
} {
  if (blocked === true) {
    return { look: "rest", word: "blocked" };
  }
  if (budget === null) {
    return { look: "ok", word: "no budget" };
  }
  return spend >= budget
    ? { look: "warn", word: "budget used up" }
    : { look: "ok", word: "within its budget" };
}

export function spendHeading(
  title: string,
  { spent, against }: BudgetView,
  { budget_in_force: budget }: Budgeted,
): string {
  return `${title} has spent ${spent}${budget === null ? "" : ` ${against}`}.`;
}
