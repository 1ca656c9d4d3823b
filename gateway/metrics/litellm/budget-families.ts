import { HOUR_MS } from "../../../core/duration.ts";
import type { BudgetState } from "../../admin/budgets-in-force.ts";
import { windowAt } from "../../ledger/budget-windows.ts";
import { gauge } from "../family.ts";
import type { LitellmFamily } from "./litellm-family.ts";
import type { Label, Metric } from "./metric-labels.ts";
import type { PayerKind, PayerStates } from "./payer-states.ts";
import { distinct, project } from "./projection.ts";
import { NONE } from "./series.ts";

/** The labels of a payer: of its id, and of its name where it has one. */
const LABELS: Readonly<Record<PayerKind, readonly [Label, Label | null]>> = {
  api_key: ["hashed_api_key", "api_key_alias"],
  team: ["team", "team_alias"],
  user: ["user", null],
  org: ["org_id", "org_alias"],
  customer: ["end_user", null],
};

/** Budgets and sizes, as `states` knows them at a scrape (null: unknown, which shows nothing). */
export function budgetFamilies(
  states: () => PayerStates | null,
  timeZone: string,
): readonly LitellmFamily[] {
  const hours = ({ budgetDuration }: BudgetState) => {
    const now = Date.now();
    const { end } = windowAt(budgetDuration, now, timeZone);
    return Number.isFinite(end) ? (end - now) / HOUR_MS : null;
  };
  return [
    ...(Object.keys(LABELS) as PayerKind[]).flatMap((kind) => [
      ofPayers(
        states,
        kind,
        `litellm_remaining_${kind}_budget_metric`,
        "Dollars that remain of the budget in its current window.",
        ({ remaining }) => remaining,
      ),
      ofPayers(
        states,
        kind,
        `litellm_${kind}_max_budget_metric`,
        "Budget in dollars.",
        ({ maxBudget }) => maxBudget,
      ),
      ofPayers(
        states,
        kind,
        `litellm_${kind}_budget_remaining_hours_metric`,
        "Hours until the budget resets.",
        hours,
      ),
    ]),
    teamSizes(states),
    count(states, "litellm_total_users", "Users.", ({ users }) => users),
    count(states, "litellm_teams_count", "Teams.", ({ teams }) => teams),
  ];
}

function ofPayers(
  states: () => PayerStates | null,
  kind: PayerKind,
  metric: Metric,
  help: string,
  value: (budget: BudgetState) => number | null,
): LitellmFamily {
  const [id, alias] = LABELS[kind];
  return {
    metric,
    create: (labels) =>
      gauge(
        metric,
        help,
        () => {
          const budgets = states()?.budgets[kind] ?? [];
          const samples = budgets.flatMap((budget) => {
            const own = value(budget);
            const values = {
              [id]: budget.id,
              ...(alias === null ? {} : { [alias]: budget.alias ?? NONE }),
            };
            return own === null
              ? []
              : [[project(values, labels), own] as const];
          });
          return distinct(samples, Math.min);
        },
        "min",
      ),
  };
}

/** Of `provider_budget_config`; null: unknown. */
export function remainingOfProviders(
  remaining: () => ReadonlyMap<string, number> | null,
): LitellmFamily {
  const metric = "litellm_provider_remaining_budget_metric";
  return {
    metric,
    create: (labels) =>
      gauge(
        metric,
        "Dollars that remain of the provider's budget.",
        () => {
          const samples = [...(remaining() ?? [])].map(
            ([provider, dollars]) =>
              [project({ api_provider: provider }, labels), dollars] as const,
          );
          return distinct(samples, Math.min);
        },
        "min",
      ),
  };
}

function teamSizes(states: () => PayerStates | null): LitellmFamily {
  const metric = "litellm_team_members_metric";
  return {
    metric,
    create: (labels) =>
      gauge(
        metric,
        "Members of the team.",
        () => {
          const sizes = states()?.teamSizes ?? [];
          const samples = sizes.map(({ team_id, team_alias, members }) => {
            const values = { team: team_id, team_alias: team_alias ?? NONE };
            return [project(values, labels), members] as const;
          });
          return distinct(samples, Math.max);
        },
        "max",
      ),
  };
}

function count(
  states: () => PayerStates | null,
  metric: Metric,
  help: string,
  value: (known: PayerStates) => number,
): LitellmFamily {
  return {
    metric,
    create: () =>
      gauge(
        metric,
        help,
        () => {
          const known = states();
          return known === null ? [] : [[{}, value(known)]];
        },
        "max",
      ),
  };
}
