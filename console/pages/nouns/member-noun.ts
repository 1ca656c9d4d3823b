import type { Member, TeamRow } from "../../../supervisor/gateway/rows.ts";
import { MASTER_USER, memberName } from "../../../supervisor/gateway/owners.ts";
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
import { USER_BY_NAME } from "./owner-fields.ts";
import { TEAM_ADDRESS } from "./team-address.ts";

/** The fields of a member of a team. */
export const MEMBER_FIELDS: readonly NounField[] = [
  {
    name: "user_id",
    label: "User",
    note: "A name or email address. Created if it does not exist.",
    required: true,
    newOnly: true,
    ...USER_BY_NAME,
  },
  {
    name: "role",
    label: "Role",
    type: "choice",
    choices: () => [
      ["user", "member"],
      ["admin", "team admin: manages members, keys and models"],
    ],
    body: (role) => (role === "admin" ? "admin" : "user"),
  },
  {
    ...BUDGET_FIELD,
    label: "Budget in the team (USD)",
    note: "Leave empty for the team's default.",
  },
  WINDOW_FIELD,
];

interface MemberRow extends Member {
  readonly team: string;
  readonly name: string;
  readonly email: string | null;
}

const COLUMNS: readonly NounColumn<MemberRow>[] = [
  nameColumn(
    ({ team, user_id: user, name, email }) => ({
      href: memberHref("member", team, user),
      text: name,
      note:
        user === MASTER_USER
          ? "the master key"
          : email === name
            ? ""
            : (email ?? ""),
    }),
    "Member",
  ),
  stateColumn(stateOfBudget),
  ...budgetColumns("Spent in the team"),
  textColumn("Role", ({ role }) =>
    role === "admin" ? "team admin" : "member",
  ),
];

export function memberHref(
  verb: "member" | "remove-member",
  team: string,
  user: string,
): string {
  return withQuery(TEAM_ADDRESS.route(verb), { id: team, user });
}

/** Members per page. */
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
    name: memberName(row, member.user_id),
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
      verb: "Add member",
      action: TEAM_ADDRESS.href(id, "add-member"),
      question: "Only calls with keys of the team count towards its budget.",
      fields: emptyFields(MEMBER_FIELDS, timeZone),
    },
  };
}
