import {
  keyPage,
  organizationList,
  teamPage,
  userPage,
} from "../supervisor/gateway/rows.ts";
import type { AdminApi } from "../supervisor/gateway/admin-api.ts";
import {
  organizationName,
  teamName,
  userName,
} from "../supervisor/gateway/owners.ts";
import type { Budgeted } from "../console/pages/nouns/budget.ts";
import { keyTitle } from "../console/pages/nouns/key-list.ts";
import { BUDGET_HEADINGS, budgetCells } from "./budget-cells.ts";
import { findGateway, gatewayArg } from "./gateway-client.ts";
import { print, printJson, printTable } from "./terminal.ts";
import { defineVerb, jsonArg } from "./verb.ts";

interface NamedBudget extends Budgeted {
  readonly of: "key" | "user" | "team" | "organization";
  readonly name: string;
}

/** Budgets of each kind, the most used first. */
const SHOWN = 100;

export const budgets = defineVerb({
  name: "budgets",
  description:
    "List the budgets of keys, users, teams and organizations, the most used first; exit code 1 if one is exhausted.",
  example: "hearth budgets",
  args: {
    ...jsonArg,
    ...gatewayArg,
  },
  run: async ({ json, url }) => {
    const found = await readBudgets(findGateway(url));
    if (json === true) {
      printJson({ budgets: found });
    } else if (found.length === 0) {
      print(
        "No budgets. Set one, for example with `hearth keys update anna-laptop --budget 5 --per 1mo`.",
      );
    } else {
      printTable(
        ["budget of", "name", ...BUDGET_HEADINGS],
        found.map((each) => [
          { text: each.of, tone: "soft" },
          { text: each.name, tone: "strong" },
          ...budgetCells(each),
        ]),
      );
    }
    return found.some((each) => usedShare(each) >= 1) ? 1 : 0;
  },
});

async function readBudgets(gateway: AdminApi): Promise<readonly NamedBudget[]> {
  const most = "sort_by=budget_used&sort_order=desc";
  const [keys, users, teams, organizations] = await Promise.all([
    gateway.ask(
      "GET",
      `/key/list?return_full_object=true&size=${SHOWN}&${most}`,
    ),
    gateway.ask("GET", `/user/list?page_size=${SHOWN}&${most}`),
    gateway.ask("GET", `/v2/team/list?page_size=${SHOWN}&${most}`),
    gateway.ask("GET", "/organization/list"),
  ]);
  const named = (of: NamedBudget["of"], name: string, row: Budgeted) => ({
    of,
    name,
    spend: row.spend,
    budget_in_force: row.budget_in_force,
    budget_reset_at: row.budget_reset_at,
  });
  return [
    ...keyPage.parse(keys).keys.map((key) => named("key", keyTitle(key), key)),
    ...userPage
      .parse(users)
      .users.map((user) => named("user", userName(user), user)),
    ...teamPage
      .parse(teams)
      .teams.map((team) => named("team", teamName(team), team)),
    ...organizationList.parse(organizations).map((each) =>
      named("organization", organizationName(each), {
        ...each,
        budget_in_force: each.litellm_budget_table?.max_budget ?? null,
      }),
    ),
  ]
    .filter(({ budget_in_force: budget }) => budget !== null)
    .toSorted((a, b) => usedShare(b) - usedShare(a));
}

function usedShare({ spend, budget_in_force: budget }: Budgeted): number {
  return budget === null || budget === 0 ? 1 : spend / budget;
}
