import type { FastifyInstance } from "fastify";
import { teamInfo, teamPage } from "../../../supervisor/gateway/rows.ts";
import { afterwards, showPage } from "../../http/show-page.ts";
import { viewBudget } from "../payers/budget.ts";
import {
  attempting,
  KEYS_PATH,
  needConfirmation,
  type PayersConsole,
} from "../payers/console.ts";
import { limitsOf } from "../payers/limit-words.ts";
import { askedOf, readList } from "../payers/list.ts";
import { MEMBER_FIELDS } from "./member-form.ts";
import {
  at,
  MEMBER_COLUMNS,
  stateOfPayer,
  teamName,
  TEAM_PATH,
  TEAM_SORTS,
  viewMembers,
  viewTeams,
} from "./people-view.ts";
import { showPayers } from "./show-payers.ts";
import { readKeysOf } from "./users-page.ts";

export interface TeamRequest {
  readonly Querystring: { readonly id?: string; readonly from?: string };
}

/** So many members stand on one page. */
const SHOWN_MEMBERS = 50;

/** GET /teams and /teams/team?id=…; POST /teams/block, /unblock and /delete?id=…. */
export function registerTeamsPages(
  server: FastifyInstance,
  payers: PayersConsole,
): void {
  const { api, timeZone } = payers;

  server.get("/teams", (request, reply) =>
    attempting(request, reply, KEYS_PATH, async () => {
      const asked = readList(request.query, TEAM_SORTS);
      const query = askedOf(asked, "page_size").toString();
      const page = teamPage.parse(
        await api.ask("GET", `/v2/team/list?${query}`),
      );
      const { total } = page;
      const list = viewTeams({
        asked,
        total,
        rows: page.teams,
        timeZone,
        pages: page.total_pages,
      });
      return showPayers(request, reply, list, total, {
        noun: "team",
        label: "Teams",
        make: "Make a team",
        searches: "Name",
        subline: "Users who pay from one budget, each with a share of it.",
        lesson:
          "A team pays for keys of several users from one budget; each member can have a budget in it.",
      });
    }),
  );

  server.get<TeamRequest>(TEAM_PATH, (request, reply) =>
    attempting(request, reply, "/teams", async () => {
      const { id, team, members } = await readTeam(payers, request.query.id);
      const from = Number(request.query.from ?? 0) || 0;
      const emails = new Map(
        team.members_with_roles.map((each) => [each.user_id, each.user_email]),
      );
      const name = teamName(team);
      const budget = viewBudget(team, timeZone);
      const state = stateOfPayer(team);
      return showPage(
        request,
        reply,
        {
          title: team.blocked
            ? `${name} is blocked.`
            : `${name} has spent ${budget.spent}${team.budget_in_force === null ? "" : ` ${budget.against}`}.`,
          look: state.look,
          current: KEYS_PATH,
          refreshes: true,
        },
        "team",
        {
          id,
          name,
          budget,
          blocked: team.blocked,
          limits: limitsOf(team),
          keys: await readKeysOf(payers, { team_id: id }),
          memberColumns: MEMBER_COLUMNS,
          members: viewMembers(
            id,
            members.slice(from, from + SHOWN_MEMBERS),
            emails,
            timeZone,
          ),
          memberCount: members.length,
          moreMembers:
            from + SHOWN_MEMBERS < members.length
              ? at(TEAM_PATH, { id, from: String(from + SHOWN_MEMBERS) })
              : null,
          addFields: MEMBER_FIELDS,
          add: at("/teams/add-member", { id }),
          edit: at("/teams/edit", { id }),
          act: (verb: string) => at(`/teams/${verb}`, { id }),
          newKey: at("/keys/new", { team: id }),
          allKeys: at("/keys", { search: id }),
        },
      );
    }),
  );

  for (const [verb, said] of [
    ["block", "is blocked: the calls of all its keys are refused"],
    ["unblock", "works again"],
  ] as const) {
    server.post<TeamRequest>(`/teams/${verb}`, (request, reply) =>
      attempting(request, reply, "/teams", async () => {
        const { id, team } = await readTeam(payers, request.query.id);
        await api.ask("POST", `/team/${verb}`, { team_id: id });
        return afterwards(
          reply,
          at(TEAM_PATH, { id }),
          `${teamName(team)} ${said}.`,
        );
      }),
    );
  }

  server.post<TeamRequest>("/teams/delete", (request, reply) => {
    const back = at(TEAM_PATH, { id: request.query.id ?? "" });
    return attempting(request, reply, back, async () => {
      const { id, team } = await readTeam(payers, request.query.id);
      needConfirmation(request, teamName(team));
      await api.ask("POST", "/team/delete", { team_ids: [id] });
      return afterwards(
        reply,
        "/teams",
        `${teamName(team)} is deleted, and its keys; what was spent stays in the ledger.`,
      );
    });
  });
}

/** A team with its members; throws a refusal. */
export async function readTeam({ api }: PayersConsole, id: string = "") {
  const { team_info: team, team_memberships: members } = teamInfo.parse(
    await api.ask("GET", at("/team/info", { team_id: id })),
  );
  return { id, team, members };
}
