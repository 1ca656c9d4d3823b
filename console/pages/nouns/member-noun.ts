import type { Member, TeamRow } from "../../../supervisor/gateway/rows.ts";
import { readable } from "../../../core/words.ts";
import { stateOfBudget } from "./budget.ts";
import { BUDGET_FIELD, WINDOW_FIELD } from "./limit-fields.ts";
import { plainHeads } from "./list-view.ts";
import { withQuery } from "./noun-address.ts";
import {
  budgetColumns,
  cellsOf,
  nameColumn,
  stateColumn,
  textColumn,
  type NounColumn,
} from "./noun-columns.ts";
import { emptyFields, type NounField } from "./noun-fields.ts";
import { TEAM_ADDRESS } from "./team-address.ts";

/** What adds a member to a team, or changes it. */
export const MEMBER_FIELDS: readonly NounField[] = [
  {
    name: "user_id",
    label: "User",
    note: "Made if new.",
    required: true,
    newOnly: true,
  },
  {
    name: "role",
    label: "Part",
    type: "choice",
    choices: () => [
      ["user", "member"],
      ["admin", "looks after it: members, keys and models"],
    ],
    body: (role) => (role === "admin" ? "admin" : "user"),
  },
  {
    ...BUDGET_FIELD,
    label: "Budget in the team, in dollars",
    note: "Empty: the team's budget for members, if it has one.",
  },
  WINDOW_FIELD,
];

interface MemberRow extends Member {
  readonly team: string;
  readonly email: string | null;
}

const COLUMNS: readonly NounColumn<MemberRow>[] = [
  nameColumn(
    ({ team, user_id: user, email }) => ({
      href: memberHref("member", team, user),
      text: readable(user),
      note: email ?? "",
    }),
    "Member",
  ),
  stateColumn(stateOfBudget),
  ...budgetColumns("Spent in the team"),
  textColumn("Part", ({ role }) =>
    role === "admin" ? "looks after it" : "member",
  ),
];

export function memberHref(
  verb: "member" | "remove-member",
  team: string,
  user: string,
): string {
  return withQuery(TEAM_ADDRESS.route(verb), { id: team, user });
}

/** So many members are on one page. */
const SHOWN_MEMBERS = 50;

/** The members on the page of their team, from one place on. */
export function viewMembers(
  {
    id,
    row,
    members,
  }: {
    readonly id: string;
    readonly row: TeamRow;
    readonly members: readonly Member[];
  },
  from: number,
  timeZone: string,
) {
  const emails = new Map(
    row.members_with_roles.map((each) => [each.user_id, each.user_email]),
  );
  const next = from + SHOWN_MEMBERS;
  const rows = members.slice(from, next).map((member) => ({
    ...member,
    team: id,
    email: emails.get(member.user_id) ?? null,
  }));
  return {
    columns: plainHeads(COLUMNS),
    rows: cellsOf(COLUMNS, rows, { timeZone, now: Date.now() }),
    total: members.length,
    more:
      next < members.length
        ? withQuery(TEAM_ADDRESS.route(), { id, from: String(next) })
        : null,
    add: {
      id: "ask-add",
      verb: "Add a member",
      action: TEAM_ADDRESS.href(id, "add-member"),
      question: "Its spend counts for the team with keys of the team only.",
      fields: emptyFields(MEMBER_FIELDS, timeZone),
    },
  };
}
