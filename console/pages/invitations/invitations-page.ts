import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { listTeamNames } from "../../../supervisor/gateway/owners.ts";
import type { Invitation } from "../../../supervisor/history/invitations.ts";
import { readForm } from "../../http/forms.ts";
import { redirectWithMessage, showPage } from "../../http/show-page.ts";
import { originOf } from "../../http/sign-in-routes.ts";
import { withTyped, type Field } from "../field.ts";
import { textIn } from "../nouns/noun-address.ts";
import { gatewayHandlers, KEYS_PATH } from "../nouns/noun-context.ts";
import { failedForm, fieldAmong, type Filled } from "../nouns/noun-fields.ts";
import { viewInvitations } from "./invitations-view.ts";
import {
  invitationRequest,
  invite,
  revokeInvitation,
  type InvitationContext,
} from "./invite.ts";

const PATH = "/invitations";

const FIELDS: readonly Field[] = [
  {
    name: "note",
    label: "For",
    note: "Whom it is for (optional). Shown in the list of invitations.",
    kind: "text",
  },
  {
    name: "team",
    label: "Team",
    note: "Team that pays (optional), by name.",
    kind: "text",
  },
  {
    name: "team_role",
    label: "Role in the team",
    kind: "choice",
    values: [
      ["user", "member"],
      ["admin", "admin of the team"],
    ],
  },
  {
    name: "role",
    label: "Role",
    kind: "choice",
    values: [
      ["internal_user", "call models; see own keys and spend"],
      ["internal_user_viewer", "see own keys and spend"],
    ],
  },
  {
    name: "max_budget",
    label: "Budget (USD)",
    note: "Of the user. Leave empty for unlimited.",
    kind: "text",
  },
  {
    name: "expires_in",
    label: "Expires",
    kind: "choice",
    values: [
      ["7d", "in one week"],
      ["1d", "in one day"],
      ["30d", "in 30 days"],
    ],
  },
];

/** GET /invitations; POST creates one and shows its link, POST …/:id/revoke. */
export function registerInvitationsPage(
  server: FastifyInstance,
  context: InvitationContext,
  timeZone: string,
): void {
  server.get(PATH, (request, reply) =>
    show(request, reply, context, timeZone, {}),
  );
  const handle = gatewayHandlers(context);
  server.post(
    PATH,
    handle(PATH, (request, reply) => create(request, reply, context, timeZone)),
  );
  server.post(
    `${PATH}/:id/revoke`,
    handle(PATH, async ({ params }, reply) => {
      revokeInvitation(context, Number(textIn(params, "id")));
      return redirectWithMessage(
        reply,
        PATH,
        "Invitation revoked. Its link is no longer valid.",
      );
    }),
  );
}

async function create(
  request: FastifyRequest,
  reply: FastifyReply,
  context: InvitationContext,
  timeZone: string,
): Promise<FastifyReply> {
  const form = readForm(request, invitationRequest);
  if (form.kind === "mistakes") {
    return show(request, reply, context, timeZone, form);
  }
  try {
    const { path, invitation } = await invite(context, form.value);
    return await show(request, reply, context, timeZone, {
      created: { url: `${originOf(request)}${path}`, invitation },
    });
  } catch (error) {
    // The gateway names the id of a team.
    const fieldOf = fieldAmong([{ name: "team_id" }]);
    return show(
      request,
      reply,
      context,
      timeZone,
      failedForm(error, request.body, fieldOf),
    );
  }
}

async function show(
  request: FastifyRequest,
  reply: FastifyReply,
  { api, invitations }: InvitationContext,
  timeZone: string,
  {
    typed = {},
    mistakes = {},
    status,
    created,
  }: Partial<Filled> & {
    readonly created?: {
      readonly url: string;
      readonly invitation: Invitation;
    };
  },
): Promise<FastifyReply> {
  const teams = await listTeamNames(api).catch(() => []);
  const wrong = Object.keys(mistakes).length > 0;
  const found = { team: mistakes["team_id"] ?? "", ...mistakes };
  const { title, rows } = viewInvitations(invitations.list(), {
    timeZone,
    now: Date.now(),
  });
  return showPage(
    request,
    reply,
    {
      title: created === undefined ? title : "Invitation created.",
      look: wrong ? "warn" : created === undefined ? "none" : "ok",
      current: KEYS_PATH,
      status: status ?? (wrong ? 400 : 200),
    },
    "invitations",
    {
      rows,
      link:
        created === undefined
          ? null
          : { url: created.url, note: created.invitation.note },
      mistake: mistakes["form"] ?? null,
      fields: withTyped(FIELDS, typed, found).map((field) =>
        field.name === "team" ? { ...field, among: teams } : field,
      ),
    },
  );
}
