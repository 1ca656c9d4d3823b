import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Refusal } from "../../../supervisor/gateway/admin-api.ts";
import { afterwards, showPage } from "../../http/show-page.ts";
import { viewBudget } from "../payers/budget.ts";
import {
  attempting,
  KEYS_PATH,
  type PayersConsole,
} from "../payers/console.ts";
import { fill, typedOf, type Filled } from "../payers/payer-form.ts";
import { carryOut } from "../payers/show-payer-form.ts";
import {
  changeFields,
  MEMBER_FIELD_NAMES,
  MEMBER_FIELDS,
  memberForm,
  newMemberForm,
} from "./member-form.ts";
import { at, teamName, TEAM_PATH } from "./people-view.ts";
import { readTeam } from "./teams-page.ts";

interface MemberRequest {
  readonly Querystring: { readonly id?: string; readonly user?: string };
}

/** GET /teams/member?id=…&user=…; POST the same, /teams/remove-member and /teams/add-member?id=…. */
export function registerMembersPages(
  server: FastifyInstance,
  payers: PayersConsole,
): void {
  const { api, timeZone } = payers;

  server.get<MemberRequest>("/teams/member", (request, reply) =>
    attempting(request, reply, "/teams", () => showMember(request, reply)),
  );
  server.post<MemberRequest>("/teams/member", (request, reply) =>
    attempting(request, reply, "/teams", () => {
      const { id = "", user = "" } = request.query;
      return carryOut(
        request,
        memberForm,
        MEMBER_FIELD_NAMES,
        (filled) => showMember(request, reply, filled),
        async ({ role, max_budget, budget_duration }) => {
          await api.ask("POST", "/team/member_update", {
            team_id: id,
            user_id: user,
            role,
            max_budget: max_budget ?? null,
            budget_duration: budget_duration ?? null,
          });
          return afterwards(
            reply,
            at(TEAM_PATH, { id }),
            `${user} is changed.`,
          );
        },
      );
    }),
  );
  server.post<MemberRequest>("/teams/remove-member", (request, reply) =>
    attempting(request, reply, "/teams", async () => {
      const { id = "", user = "" } = request.query;
      await api.ask("POST", "/team/member_delete", {
        team_id: id,
        user_id: user,
      });
      return afterwards(
        reply,
        at(TEAM_PATH, { id }),
        `${user} is no member any more; its keys of the team are deleted.`,
      );
    }),
  );
  server.post<MemberRequest>("/teams/add-member", (request, reply) =>
    attempting(request, reply, "/teams", async () => {
      const { id, team } = await readTeam(payers, request.query.id);
      return carryOut(
        request,
        newMemberForm,
        MEMBER_FIELD_NAMES,
        (filled) =>
          showForm(request, reply, {
            title: `Add a member to ${teamName(team)}`,
            asked: fill(MEMBER_FIELDS, filled),
            mistake: filled.mistakes["form"] ?? null,
            action: at("/teams/add-member", { id }),
            button: "Add",
            budget: null,
            remove: null,
            name: "",
            back: at(TEAM_PATH, { id }),
          }),
        async ({ user_id, role, max_budget, budget_duration }) => {
          await api.ask("POST", "/team/member_add", {
            team_id: id,
            member: { user_id, role },
            max_budget: max_budget ?? null,
            budget_duration: budget_duration ?? null,
          });
          return afterwards(
            reply,
            at(TEAM_PATH, { id }),
            `${user_id} is a member now.`,
          );
        },
      );
    }),
  );

  async function showMember(
    request: FastifyRequest<MemberRequest>,
    reply: FastifyReply,
    filled?: Filled,
  ): Promise<FastifyReply> {
    const { user = "" } = request.query;
    const { id, team, members } = await readTeam(payers, request.query.id);
    const member = members.find(({ user_id }) => user_id === user);
    if (member === undefined) {
      throw new Refusal(
        `${user} is no member of ${teamName(team)}.`,
        404,
        "user_id",
      );
    }
    const typed = typedOf(member);
    return showForm(request, reply, {
      title: `${user} in ${teamName(team)}`,
      asked: fill(
        changeFields(member.budget_duration ?? ""),
        filled ?? { typed, mistakes: {} },
      ),
      mistake: filled?.mistakes["form"] ?? null,
      action: at("/teams/member", { id, user }),
      button: "Save",
      budget: viewBudget(member, timeZone),
      remove: at("/teams/remove-member", { id, user }),
      name: user,
      back: at(TEAM_PATH, { id }),
    });
  }
}

function showForm(
  request: FastifyRequest,
  reply: FastifyReply,
  view: {
    readonly title: string;
    /** Not `fields`: templates hand what they have on to those they include. */
    readonly asked: readonly { readonly mistake?: string | undefined }[];
    readonly mistake: string | null;
  } & Readonly<Record<string, unknown>>,
): Promise<FastifyReply> {
  const wrong =
    view.mistake !== null ||
    view.asked.some(({ mistake }) => mistake !== undefined);
  return showPage(
    request,
    reply,
    {
      title: view.title,
      current: KEYS_PATH,
      look: wrong ? "warn" : "none",
      status: wrong ? 400 : 200,
    },
    "member",
    view,
  );
}
