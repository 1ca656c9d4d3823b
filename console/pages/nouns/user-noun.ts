import type { z } from "zod";
import {
  MASTER_USER,
  teamName,
  userName,
} from "../../../supervisor/gateway/owners.ts";
import {
  teamInfo,
  userInfo,
  userPage,
  type ListedUser,
} from "../../../supervisor/gateway/rows.ts";
import { redirectWithMessage } from "../../http/show-page.ts";
import { readable } from "../../../core/words.ts";
import { callsHref } from "../calls/call-choice.ts";
import { spendHeading, stateOfBudget, viewBudget } from "./budget.ts";
import { LIMIT_FIELDS, limitFigures } from "./limit-fields.ts";
import { gatewayQuery } from "./list-view.ts";
import type { Noun, NounItem } from "./noun.ts";
import { withQuery } from "./noun-address.ts";
import {
  budgetColumns,
  nameColumn,
  stateColumn,
  countColumn,
  textColumn,
  type NounColumn,
} from "./noun-columns.ts";
import type { NounContext } from "./noun-context.ts";
import type { Choice, NounField } from "./noun-fields.ts";
import { BUDGET_STATES, budgetedPage } from "./noun-list.ts";
import { readOwnedKeys } from "./owned-keys.ts";
import { TEAM_ADDRESS } from "./team-address.ts";
import { USER_ADDRESS } from "./user-address.ts";

interface User extends NounItem {
  readonly row: z.infer<typeof userInfo>["user_info"];
  readonly teams: z.infer<typeof userInfo>["teams"];
  readonly ownKeys: z.infer<typeof userInfo>["keys"];
}

/** The roles as the gateway calls them, and in words. */
const ROLES: readonly Choice[] = [
  ["internal_user", "call models; see own keys and spend"],
  ["internal_user_viewer", "see own keys and spend"],
  ["proxy_admin_viewer", "view everything"],
  ["proxy_admin", "full access"],
];

const COLUMNS: readonly NounColumn<ListedUser>[] = [
  nameColumn(
    (user) => ({
      href: USER_ADDRESS.href(user.user_id),
      text: userName(user),
      note: [
        ...present([user.user_id, user.user_email]).filter(
          (text) => text !== userName(user),
        ),
        ...(user.user_id === MASTER_USER ? ["the master key"] : []),
      ].join(", "),
    }),
    "Name",
    "user_id",
  ),
  stateColumn(stateOfBudget),
  ...budgetColumns(),
  countColumn("Keys", (user) => user.key_count),
  textColumn("Role", ({ user_role: role }) => roleWords(role)),
];

const FIELDS: readonly NounField[] = [
  {
    name: "user_id",
    label: "Name",
    note: "Short and permanent, for example anna. Shown with keys, reports and budgets.",
    required: true,
    newOnly: true,
  },
  { name: "user_alias", label: "Full name" },
  {
    name: "user_email",
    label: "Email address",
    note: "Used for search only; no email is sent.",
  },
  {
    name: "sso_user_id",
    label: "Account",
    note: "With which the user signs in at this console, as PROVIDER:SUBJECT; set at the first sign-in.",
  },
  {
    name: "user_role",
    label: "Role",
    type: "choice",
    choices: () => ROLES,
  },
  ...LIMIT_FIELDS,
];

export const USER_NOUN: Noun<ListedUser, User> = {
  name: "User",
  address: USER_ADDRESS,
  list: {
    label: "Users",
    createLabel: "Create user",
    searchLabel: "Search by name or email address",
    subline: "People or programs with a budget across all of their keys.",
    lesson: {
      text: "A user combines the spend of several keys under one budget. Naming a new user in a key creates it.",
    },
    columns: COLUMNS,
    states: BUDGET_STATES,
    read: ({ api }, query) =>
      budgetedPage("user", USER_ADDRESS, query, async (wanted) => {
        const parameters = gatewayQuery(wanted, "page_size").toString();
        const page = userPage.parse(
          await api.ask("GET", `/user/list?${parameters}`),
        );
        const { users: rows, total, total_pages: pages } = page;
        return { rows, total, pages };
      }),
  },
  form: {
    fields: FIELDS,
    create: {
      title: "Create a user",
      button: "Create user",
      intro: "Budget and limits apply across all of the user's keys.",
      path: "/user/new",
      body: { auto_create_key: false },
      finish: (_request, reply, _context, _answer, values) => {
        const id = String(values["user_id"]);
        return redirectWithMessage(
          reply,
          USER_ADDRESS.href(id),
          `User "${id}" created.`,
        );
      },
    },
    edit: {
      path: "/user/update",
      idName: "user_id",
      titleAfter: ({ title }) => title,
    },
  },
  find: findUser,
  detail: {
    template: "user",
    view: viewUser,
    actions: [
      {
        verb: "block",
        label: "Block",
        question: ({ title }) =>
          `Deny all calls with the keys of ${title}, and sign it out of this console?`,
        applies: ({ row }) => !row.blocked,
        destroys: true,
        path: "/user/update",
        body: ({ id }) => ({ user_id: id, blocked: true }),
        finish: ({ title }) =>
          `User "${title}" blocked. Calls with its keys are denied within a second; it is signed out when its session is confirmed again.`,
      },
      {
        verb: "unblock",
        label: "Unblock",
        question: ({ title }) => `Allow calls with the keys of ${title} again?`,
        applies: ({ row }) => row.blocked,
        path: "/user/update",
        body: ({ id }) => ({ user_id: id, blocked: false }),
        finish: ({ title }) => `User "${title}" unblocked.`,
      },
      {
        verb: "delete",
        label: "Delete",
        question: () =>
          "Deletes the user and all of its keys; their calls are denied from now on. The spend stays in the ledger.",
        deletes: true,
        path: "/user/delete",
        body: ({ id }) => ({ user_ids: [id] }),
        finish: ({ title }) =>
          `User "${title}" and its keys deleted. The spend stays in the ledger.`,
      },
    ],
  },
};

async function findUser({ api }: NounContext, id: string): Promise<User> {
  const {
    user_info: row,
    teams,
    keys: ownKeys,
  } = userInfo.parse(
    await api.ask("GET", withQuery("/user/info", { user_id: id })),
  );
  return { id, title: userName(row), row, teams, ownKeys };
}

async function viewUser(
  context: NounContext,
  { id, title, row, teams, ownKeys: keys }: User,
) {
  const budget = viewBudget(row, context.timeZone, Date.now());
  const members = new Set(teams.map(({ team_id }) => team_id));
  const paying = new Set(keys.flatMap(({ team_id }) => team_id ?? []));
  return {
    title: spendHeading(title, budget, row),
    isMaster: id === MASTER_USER,
    calls: callsHref({ user: id }),
    look: stateOfBudget(row).look,
    budget,
    keys: await readOwnedKeys(context, "user", id),
    facts: present([
      id,
      row.user_email,
      roleWords(row.user_role),
      row.sso_user_id == null ? null : `signs in as ${row.sso_user_id}`,
      row.blocked ? "blocked" : null,
    ]).filter((fact) => fact !== title),
    limits: limitFigures(row),
    teams: teams.map((team) => ({
      href: TEAM_ADDRESS.href(team.team_id),
      name: teamName(team),
    })),
    payingTeams: await readTeams(
      context,
      [...paying].filter((team) => !members.has(team)),
    ),
  };
}

const MAX_PAYING_TEAMS = 10;

/** Teams by name; one that cannot be read is named by its id. */
function readTeams({ api }: NounContext, ids: readonly string[]) {
  return Promise.all(
    ids.slice(0, MAX_PAYING_TEAMS).map(async (id) => {
      const path = withQuery("/team/info", { team_id: id });
      const answer = await api.ask("GET", path).catch(() => null);
      return {
        href: TEAM_ADDRESS.href(id),
        name: answer === null ? id : teamName(teamInfo.parse(answer).team_info),
      };
    }),
  );
}

function roleWords(role: string): string {
  return ROLES.find(([value]) => value === role)?.[1] ?? role;
}

function present(texts: readonly (string | null)[]): readonly string[] {
  return texts.flatMap((text) => (text === null ? [] : [readable(text)]));
}
