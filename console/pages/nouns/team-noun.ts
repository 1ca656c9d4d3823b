import { z } from "zod";
import { isTeamNamed, teamName } from "../../../supervisor/gateway/owners.ts";
import {
  teamInfo,
  teamPage,
  type Member,
  type TeamRow,
} from "../../../supervisor/gateway/rows.ts";
import { redirectWithMessage } from "../../http/show-page.ts";
import { callsHref } from "../calls/call-choice.ts";
import { spendHeading, stateOfBudget, viewBudget } from "./budget.ts";
import { LIMIT_FIELDS, limitFigures, windowField } from "./limit-fields.ts";
import { gatewayQuery } from "./list-view.ts";
import { viewMembers } from "./member-noun.ts";
import type { Noun, NounAction, NounItem } from "./noun.ts";
import { textIn, withQuery } from "./noun-address.ts";
import {
  budgetColumns,
  nameColumn,
  stateColumn,
  countColumn,
  type NounColumn,
} from "./noun-columns.ts";
import type { NounContext } from "./noun-context.ts";
import type { NounField } from "./noun-fields.ts";
import { BUDGET_STATES, budgetedPage } from "./noun-list.ts";
import { readOwnedKeys } from "./owned-keys.ts";
import { TEAM_ADDRESS } from "./team-address.ts";

export interface Team extends NounItem {
  readonly row: TeamRow;
  readonly members: readonly Member[];
}

const COLUMNS: readonly NounColumn<TeamRow>[] = [
  nameColumn(
    (team) => ({
      href: TEAM_ADDRESS.href(team.team_id),
      text: teamName(team),
      note: team.team_alias === null ? "" : team.team_id,
    }),
    "Name",
    "team_alias",
  ),
  stateColumn(stateOfBudget),
  ...budgetColumns(),
  countColumn("Members", (team) => team.members_with_roles.length),
];

const FIELDS: readonly NounField[] = [
  {
    name: "team_alias",
    label: "Name",
    required: true,
    isTaken: ({ api }, typed, row) => isTeamNamed(api, typed, row?.["team_id"]),
  },
  {
    name: "team_id",
    label: "ID",
    note: "Used by the API. Leave empty to generate one.",
    newOnly: true,
  },
  {
    name: "team_member_budget",
    label: "Budget per member (USD)",
    note: "Default for members without their own budget. Leave empty for unlimited.",
    type: "number",
  },
  windowField("team_member_budget_duration", "Budgets of members reset"),
  ...LIMIT_FIELDS,
];

const ACTIONS: readonly NounAction<Team>[] = [
  {
    verb: "block",
    label: "Block",
    question: ({ title }) =>
      `Deny all calls of the keys of ${title} from now on?`,
    applies: ({ row }) => !row.blocked,
    destroys: true,
    path: "/team/block",
    body: ({ id }) => ({ team_id: id }),
    finish: ({ title }) =>
      `Team "${title}" blocked. All calls of its keys are denied.`,
  },
  {
    verb: "unblock",
    label: "Unblock",
    question: ({ title }) => `Allow calls of the keys of ${title} again?`,
    applies: ({ row }) => row.blocked,
    path: "/team/unblock",
    body: ({ id }) => ({ team_id: id }),
    finish: ({ title }) => `Team "${title}" unblocked.`,
  },
  {
    verb: "delete",
    label: "Delete",
    question: () =>
      "Deletes the team and all of its keys; their calls are denied from now on. The spend stays in the ledger.",
    deletes: true,
    path: "/team/delete",
    body: ({ id }) => ({ team_ids: [id] }),
    finish: ({ title }) =>
      `Team "${title}" and its keys deleted. The spend stays in the ledger.`,
  },
];

export const TEAM_NOUN: Noun<TeamRow, Team> = {
  name: "Team",
  address: TEAM_ADDRESS,
  list: {
    label: "Teams",
    createLabel: "Create team",
    searchLabel: "Search by name",
    subline: "Users who share a budget.",
    lesson: {
      text: "A team pays for the keys of several users from one budget. Each member can have a budget within it.",
    },
    columns: COLUMNS,
    states: BUDGET_STATES,
    read: ({ api }, query) =>
      budgetedPage("team", TEAM_ADDRESS, query, async (wanted) => {
        const parameters = gatewayQuery(wanted, "page_size").toString();
        const page = teamPage.parse(
          await api.ask("GET", `/v2/team/list?${parameters}`),
        );
        const { teams: rows, total, total_pages: pages } = page;
        return { rows, total, pages };
      }),
  },
  form: {
    fields: FIELDS,
    create: {
      title: "Create a team",
      button: "Create team",
      intro: "Add members on the next page.",
      path: "/team/new",
      finish: (_request, reply, _context, answer, values) => {
        const { team_id: id } = z
          .looseObject({ team_id: z.string() })
          .parse(answer);
        return redirectWithMessage(
          reply,
          TEAM_ADDRESS.href(id),
          `Team "${String(values["team_alias"])}" created.`,
        );
      },
    },
    edit: {
      path: "/team/update",
      idName: "team_id",
      titleAfter: ({ id }, { team_alias: alias }) =>
        typeof alias === "string" ? alias : id,
    },
  },
  find: findTeam,
  detail: { template: "team", view: viewTeam, actions: ACTIONS },
};

/** A team with its members; throws a refusal. */
export async function findTeam(
  { api }: NounContext,
  id: string,
): Promise<Team> {
  const { team_info: row, team_memberships: members } = teamInfo.parse(
    await api.ask("GET", withQuery("/team/info", { team_id: id })),
  );
  return { id, title: teamName(row), row, members };
}

async function viewTeam(context: NounContext, team: Team, query: unknown) {
  const { id, title, row } = team;
  const budget = viewBudget(row, context.timeZone, Date.now());
  return {
    title: row.blocked
      ? `${title} is blocked.`
      : spendHeading(title, budget, row),
    look: stateOfBudget(row).look,
    id,
    calls: callsHref({ team: id }),
    budget,
    limits: limitFigures(row),
    keys: await readOwnedKeys(context, "team", id),
    members: viewMembers(
      team,
      Number(textIn(query, "from")) || 0,
      context.timeZone,
    ),
  };
}
