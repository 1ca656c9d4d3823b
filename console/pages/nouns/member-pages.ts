import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Refusal } from "../../../supervisor/gateway/admin-api.ts";
import { memberName } from "../../../supervisor/gateway/owners.ts";
import { redirectWithMessage } from "../../http/show-page.ts";
import { viewBudget } from "./budget.ts";
import { MEMBER_FIELDS, memberHref } from "./member-noun.ts";
import { textIn } from "./noun-address.ts";
import {
  freshOrKnown,
  gatewayHandlers,
  type NounContext,
} from "./noun-context.ts";
import {
  bodyOf,
  changedFields,
  fieldsFor,
  typedOf,
  withIds,
} from "./noun-fields.ts";
import { showForm, submitForm, type FormPage } from "./noun-form.ts";
import { TEAM_ADDRESS } from "./team-address.ts";
import { findTeam, type Team } from "./team-noun.ts";

/** GET /teams/member?id=…&user=…; POST the same, /teams/remove-member and /teams/add-member?id=…. */
export function registerMemberPages(
  server: FastifyInstance,
  context: NounContext,
): void {
  const { list, route } = TEAM_ADDRESS;
  const handle = gatewayHandlers(context);
  server.get(
    route("member"),
    handle(list, async (request, reply) => {
      const { page, member } = await readMember(request, context);
      const filled = { typed: typedOf(member), mistakes: {} };
      return showForm(request, reply, context, page, filled);
    }),
  );
  server.post(route("member"), handle(list, updateMember));
  server.post(route("remove-member"), handle(list, removeMember));
  server.post(route("add-member"), handle(list, addMember));
}

async function updateMember(
  request: FastifyRequest,
  reply: FastifyReply,
  context: NounContext,
): Promise<FastifyReply> {
  const { id, user, name, page } = await freshOrKnown(() =>
    readMember(request, context),
  );
  return submitForm(request, reply, context, page, async (values) => {
    const fields = changedFields(page.fields, request.body);
    if (fields.length > 0) {
      await context.api.ask("POST", "/team/member_update", {
        ...bodyOf(fields, values),
        team_id: id,
        user_id: user,
      });
    }
    return redirectWithMessage(
      reply,
      TEAM_ADDRESS.href(id),
      `Member "${name}" updated.`,
    );
  });
}

async function removeMember(
  request: FastifyRequest,
  reply: FastifyReply,
  context: NounContext,
): Promise<FastifyReply> {
  const { id, user, name } = await readMember(request, context);
  await context.api.ask("POST", "/team/member_delete", {
    team_id: id,
    user_id: user,
  });
  return redirectWithMessage(
    reply,
    TEAM_ADDRESS.href(id),
    `Member "${name}" removed. Their keys of the team are deleted.`,
  );
}

async function addMember(
  request: FastifyRequest,
  reply: FastifyReply,
  context: NounContext,
): Promise<FastifyReply> {
  const team = await freshOrKnown(() =>
    findTeam(context, TEAM_ADDRESS.idIn(request)),
  );
  const page = {
    title: `Add a member to ${team.title}`,
    intro: "",
    action: TEAM_ADDRESS.href(team.id, "add-member"),
    button: "Add member",
    back: TEAM_ADDRESS.href(team.id),
    fields: fieldsFor(MEMBER_FIELDS, true),
    row: null,
  };
  return submitForm(request, reply, context, page, async (values) => {
    const typed = bodyOf(page.fields, values);
    const { user_id, role, ...budget } = await withIds(
      context,
      page.fields,
      null,
      typed,
    );
    if (team.members.some((member) => member.user_id === user_id)) {
      throw new Refusal(
        `User "${String(typed["user_id"])}" is already a member of the team.`,
        400,
        "user_id",
      );
    }
    await context.api.ask("POST", "/team/member_add", {
      team_id: team.id,
      member: { user_id, role },
      ...budget,
    });
    return redirectWithMessage(
      reply,
      TEAM_ADDRESS.href(team.id),
      `Member "${String(typed["user_id"])}" added.`,
    );
  });
}

/** The member that a request names, with its form; throws a refusal. */
async function readMember(request: FastifyRequest, context: NounContext) {
  const team = await findTeam(context, TEAM_ADDRESS.idIn(request));
  const user = textIn(request.query, "user");
  const member = team.members.find(({ user_id }) => user_id === user);
  if (member === undefined) {
    throw new Refusal(
      `User "${user}" is not a member of team "${team.title}".`,
      404,
      "user_id",
    );
  }
  const budget = viewBudget(member, context.timeZone, Date.now());
  const name = memberName(team.row, user);
  const page = memberPage(
    team,
    { user, name },
    `Spent in the team: ${budget.spent}, ${budget.against}`,
  );
  return { id: team.id, user, name, member, page };
}

function memberPage(
  { id, title }: Team,
  { user, name }: { readonly user: string; readonly name: string },
  intro: string,
): FormPage {
  return {
    title: `${name} in ${title}`,
    intro,
    action: memberHref("member", id, user),
    button: "Save changes",
    back: TEAM_ADDRESS.href(id),
    fields: fieldsFor(MEMBER_FIELDS, false),
    row: null,
    actions: [
      {
        id: "ask-remove",
        verb: "Remove member",
        action: memberHref("remove-member", id, user),
        question: `Removes ${name} from the team and deletes their keys of the team.`,
        destroys: true,
      },
    ],
  };
}
