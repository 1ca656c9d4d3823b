import type {
  ListedUser,
  Member,
  TeamRow,
} from "../../../supervisor/gateway/rows.ts";
import { viewBudget } from "../payers/budget.ts";
import {
  viewList,
  type Column,
  type ListAsked,
  type ListRow,
} from "../payers/list.ts";
import type { Look } from "../../../core/shapes.ts";
import { grouped, readable } from "../../../core/words.ts";

/** The first is how the list is sorted unless told. */
export const USER_SORTS = ["created_at", "user_id", "spend", "budget_used"];
export const TEAM_SORTS = ["created_at", "team_alias", "spend", "budget_used"];

const SPENT_COLUMNS: readonly Column[] = [
  { title: "Spent", sort: "spend", number: true },
  { title: "Budget used", sort: "budget_used", number: true },
];
const USER_COLUMNS: readonly Column[] = [
  { title: "Name", sort: "user_id" },
  { title: "State", sort: null },
  ...SPENT_COLUMNS,
  { title: "Keys", sort: null },
  { title: "Role", sort: null },
];
const TEAM_COLUMNS: readonly Column[] = [
  { title: "Name", sort: "team_alias" },
  { title: "State", sort: null },
  ...SPENT_COLUMNS,
  { title: "Members", sort: null },
];
export const MEMBER_COLUMNS: readonly Column[] = [
  { title: "Member", sort: null },
  { title: "State", sort: null },
  { title: "Spent in the team", sort: null, number: true },
  { title: "Budget used", sort: null, number: true },
  { title: "Part", sort: null },
];

/** Ids may hold any letter, also those that end a path: they stand in the query. */
export const USER_PATH = "/users/user";
export const TEAM_PATH = "/teams/team";

export function at(
  path: string,
  ids: Readonly<Record<string, string>>,
): string {
  return `${path}?${new URLSearchParams(ids).toString()}`;
}

interface Paged<Row> {
  readonly asked: ListAsked;
  readonly rows: readonly Row[];
  readonly total: number;
  readonly pages: number;
  readonly timeZone: string;
}

export function viewUsers(page: Paged<ListedUser>) {
  return viewList({
    path: "/users",
    columns: USER_COLUMNS,
    asked: page.asked,
    total: page.total,
    pages: page.pages,
    rows: page.rows.map((user) => ({
      ...listed(user, page.timeZone),
      href: at(USER_PATH, { id: user.user_id }),
      name: readable(user.user_id),
      note: [user.user_alias, user.user_email]
        .flatMap((each) => (each === null ? [] : [readable(each)]))
        .join(", "),
      cells: [grouped(user.key_count), roleWords(user.user_role)],
    })),
  });
}

export function viewTeams(page: Paged<TeamRow>) {
  return viewList({
    path: "/teams",
    columns: TEAM_COLUMNS,
    asked: page.asked,
    total: page.total,
    pages: page.pages,
    rows: page.rows.map((team) => ({
      ...listed(team, page.timeZone),
      href: at(TEAM_PATH, { id: team.team_id }),
      name: teamName(team),
      note: team.team_alias === null ? "" : team.team_id,
      cells: [grouped(team.members_with_roles.length)],
    })),
  });
}

export function viewMembers(
  teamId: string,
  members: readonly Member[],
  emails: ReadonlyMap<string, string | null>,
  timeZone: string,
): readonly ListRow[] {
  return members.map((member) => ({
    ...listed(member, timeZone),
    href: at("/teams/member", { id: teamId, user: member.user_id }),
    name: readable(member.user_id),
    note: emails.get(member.user_id) ?? "",
    cells: [member.role === "admin" ? "looks after it" : "member"],
  }));
}

export function teamName(
  team: Pick<TeamRow, "team_id" | "team_alias">,
): string {
  return readable(team.team_alias ?? team.team_id);
}

interface Budgeted {
  readonly spend: number;
  readonly budget_in_force: number | null;
  readonly budget_reset_at: string | null;
  readonly blocked?: unknown;
}

/** What every row tells alike. */
function listed(row: Budgeted, timeZone: string) {
  return { budget: viewBudget(row, timeZone), state: stateOfPayer(row) };
}

export function stateOfPayer({
  spend,
  budget_in_force: budget,
  blocked,
}: Budgeted): { readonly look: Look; readonly word: string } {
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

/** The roles as the gateway calls them, and in words. */
export const ROLES = [
  ["internal_user", "calls models, sees its own keys and spend"],
  ["internal_user_viewer", "sees its own keys and spend"],
  ["proxy_admin_viewer", "sees everything, changes nothing"],
  ["proxy_admin", "may do everything"],
] as const;

function roleWords(role: string): string {
  return ROLES.find(([written]) => written === role)?.[1] ?? role;
}

/** The page's heading. */
export function judgePayers(
  total: number,
  noun: "user" | "team",
  searched: boolean,
): { readonly title: string; readonly look: Look } {
  if (total === 0 && !searched) {
    return { title: `There is no ${noun} yet.`, look: "none" };
  }
  return {
    title: `${grouped(total)} ${noun}${total === 1 ? "" : "s"}${searched ? " found" : ""}.`,
    look: "ok",
  };
}
