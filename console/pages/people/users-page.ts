import type { FastifyInstance } from "fastify";
import {
  keyPage,
  userInfo,
  userPage,
} from "../../../supervisor/gateway/rows.ts";
import { afterwards, showPage } from "../../http/show-page.ts";
import { nameOf, stateOf, lastUseOf } from "../keys/keys-view.ts";
import { viewBudget } from "../payers/budget.ts";
import {
  attempting,
  KEYS_PATH,
  needConfirmation,
  type PayersConsole,
} from "../payers/console.ts";
import { askedOf, readList, type ListRow } from "../payers/list.ts";
import { limitsOf } from "../payers/limit-words.ts";
import { readable } from "../../../core/words.ts";
import {
  at,
  stateOfPayer,
  teamName,
  TEAM_PATH,
  USER_PATH,
  USER_SORTS,
  viewUsers,
} from "./people-view.ts";
import { showPayers } from "./show-payers.ts";

interface UserRequest {
  readonly Querystring: { readonly id?: string };
}

/** On the page of a user or a team; the list has them all. */
const SHOWN_KEYS = 10;

/** GET /users and /users/user?id=…; POST /users/delete?id=…. */
export function registerUsersPages(
  server: FastifyInstance,
  payers: PayersConsole,
): void {
  const { api, timeZone } = payers;

  server.get("/users", (request, reply) =>
    attempting(request, reply, KEYS_PATH, async () => {
      const asked = readList(request.query, USER_SORTS);
      const query = askedOf(asked, "page_size").toString();
      const page = userPage.parse(await api.ask("GET", `/user/list?${query}`));
      const { total } = page;
      const list = viewUsers({
        asked,
        total,
        rows: page.users,
        timeZone,
        pages: page.total_pages,
      });
      return showPayers(request, reply, list, total, {
        noun: "user",
        label: "Users",
        make: "Make a user",
        searches: "Name or address",
        subline: "People, or programs, with budgets over all of their keys.",
        lesson:
          "A user is somebody whose spend is counted together, over all of its keys. One is made by itself when a key names it.",
      });
    }),
  );

  server.get<UserRequest>(USER_PATH, (request, reply) =>
    attempting(request, reply, "/users", async () => {
      const { id = "" } = request.query;
      const [info, keys] = await Promise.all([
        api.ask("GET", at("/user/info", { user_id: id })),
        readKeysOf(payers, { user_id: id }),
      ]);
      const { user_info: user, teams } = userInfo.parse(info);
      const state = stateOfPayer(user);
      const budget = viewBudget(user, timeZone);
      return showPage(
        request,
        reply,
        {
          title: `${readable(id)} has spent ${budget.spent}${user.budget_in_force === null ? "" : ` ${budget.against}`}.`,
          look: state.look,
          current: KEYS_PATH,
          refreshes: true,
        },
        "user",
        {
          name: readable(id),
          budget,
          keys,
          facts: [user.user_alias, user.user_email, user.user_role].flatMap(
            (each) => (each === null ? [] : [readable(each)]),
          ),
          limits: limitsOf(user),
          teams: teams.map((team) => ({
            href: at(TEAM_PATH, { id: team.team_id }),
            name: teamName(team),
          })),
          edit: at("/users/edit", { id }),
          remove: at("/users/delete", { id }),
          newKey: at("/keys/new", { user: id }),
          allKeys: at("/keys", { search: id }),
        },
      );
    }),
  );

  server.post<UserRequest>("/users/delete", (request, reply) => {
    const { id = "" } = request.query;
    return attempting(request, reply, at(USER_PATH, { id }), async () => {
      needConfirmation(request, readable(id));
      await api.ask("POST", "/user/delete", { user_ids: [id] });
      return afterwards(
        reply,
        "/users",
        `${id} is deleted, and its keys; what was spent stays in the ledger.`,
      );
    });
  });
}

/** The keys of a user or a team that spent most, and how many there are. */
export async function readKeysOf(
  { api, timeZone }: PayersConsole,
  owner: Readonly<Record<string, string>>,
): Promise<{ readonly rows: readonly ListRow[]; readonly total: number }> {
  const query = {
    ...owner,

    return_full_object: "true",
    sort_by: "spend",
    size: String(SHOWN_KEYS),
  };
  const page = keyPage.parse(await api.ask("GET", at("/key/list", query)));
  return {
    rows: page.keys.map((key) => ({
      href: `${KEYS_PATH}/${key.token}`,
      name: nameOf(key),
      note: key.key_alias === null ? "" : key.key_name,
      budget: viewBudget(key, timeZone),
      cells: [lastUseOf(key, Date.now())],
      state: stateOf(key, timeZone),
    })),
    total: page.total_count,
  };
}
