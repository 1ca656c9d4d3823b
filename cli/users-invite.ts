import type { InvitationLink } from "../console/http/invitation-routes.ts";
import { readable } from "../core/words.ts";
import { invitationState } from "../supervisor/history/invitation-state.ts";
import type { Invitation } from "../supervisor/history/invitations.ts";
import { inZone } from "./local-time.ts";
import { addressArg, findStack, type StackClient } from "./stack-client.ts";
import { print, printAnswer, printJson, printList } from "./terminal.ts";
import { defineVerb, jsonArg, type ExitCode } from "./verb.ts";

export const invite = defineVerb({
  name: "users invite",
  description:
    "Print a link by which a person becomes a user and receives a first key, once.",
  example: "hearth users invite --for anna --team kitchen --budget 5",
  args: {
    for: {
      type: "string",
      description: "Whom it is for, shown in the list",
      valueHint: "name",
    },
    team: {
      type: "string",
      description: "Team that pays, by name",
      valueHint: "team",
    },
    "team-role": {
      type: "string",
      description: "user or admin (default: user)",
      valueHint: "role",
    },
    role: {
      type: "string",
      description:
        "internal_user or internal_user_viewer (default: internal_user)",
      valueHint: "role",
    },
    budget: {
      type: "string",
      description: "Budget of the user in dollars",
      valueHint: "dollars",
    },
    expires: {
      type: "string",
      description: "How long the link is valid, at most 30d (default: 7d)",
      valueHint: "7d",
    },
    list: { type: "boolean", description: "List invitations" },
    revoke: {
      type: "string",
      description: "Make the link of an open invitation invalid",
      valueHint: "number",
    },
    ...jsonArg,
    ...addressArg,
  },
  run: async ({ list, revoke, json, url, ...wanted }) => {
    const stack = findStack(url);
    if (revoke !== undefined) {
      return revokeOne(stack, revoke, json);
    }
    if (list) {
      return show(stack, json);
    }
    const created = (await stack.ask("POST", "/api/invitations", undefined, {
      note: wanted.for,
      team: wanted.team,
      team_role: wanted["team-role"],
      role: wanted.role,
      max_budget: wanted.budget,
      expires_in: wanted.expires,
    })) as InvitationLink;
    const link = `${created.publicUrl ?? stack.address}${created.path}`;
    if (json) {
      printJson({ url: link, invitation: created.invitation });
      return 0;
    }
    print(link);
    print(
      `Valid once, until ${inZone(created.invitation.expiresAt)}. Revoke it with \`hearth users invite --revoke ${created.invitation.id}\`.`,
    );
    return 0;
  },
});

async function show(
  stack: StackClient,
  json: boolean | undefined,
): Promise<ExitCode> {
  const { invitations } = (await stack.ask("GET", "/api/invitations")) as {
    readonly invitations: readonly Invitation[];
  };
  printList(json, invitations, {
    empty: "No invitations.",
    headings: ["number", "for", "state", "team", "created by"],
    rowOf: (each) => [
      { text: String(each.id), tone: "strong" },
      { text: readable(each.note) },
      { text: invitationState(each, Date.now(), inZone).words },
      { text: readable(each.teamName ?? "none") },
      { text: readable(each.createdBy), tone: "soft" },
    ],
  });
  return 0;
}

async function revokeOne(
  stack: StackClient,
  id: string,
  json: boolean | undefined,
): Promise<ExitCode> {
  const { revoked } = (await stack.ask(
    "DELETE",
    `/api/invitations/${encodeURIComponent(id)}`,
  )) as { readonly revoked: Invitation };
  printAnswer(
    json,
    revoked,
    `Invitation ${revoked.id} revoked. Its link is no longer valid.`,
  );
  return 0;
}
