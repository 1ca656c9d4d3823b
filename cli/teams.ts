import { z } from "zod";
import { shellWord } from "../core/shell.ts";
import { grouped } from "../core/words.ts";
import type { AdminApi } from "../supervisor/gateway/admin-api.ts";
import {
  findTeamId,
  findUserId,
  isTeamNamed,
  memberName,
  teamName,
} from "../supervisor/gateway/owners.ts";
import {
  teamInfo,
  teamPage,
  type Member,
  type TeamRow,
} from "../supervisor/gateway/rows.ts";
import { askForName, yesArg } from "./ask-for-name.ts";
import { BUDGET_HEADINGS, budgetCells } from "./budget-cells.ts";
import { findGateway, gatewayArg } from "./gateway-client.ts";
import {
  limitArgs,
  limitsIn,
  needChange,
  numberOf,
  orNone,
} from "./limit-options.ts";
import { printRows, rowListArgs } from "./row-list.ts";
import { sendChange } from "./send-change.ts";
import {
  harmless,
  paint,
  print,
  printAnswer,
  printJson,
  printTable,
  type Cell,
} from "./terminal.ts";
import { complainOfUnknownModels } from "./unknown-models.ts";
import { defineVerb, jsonArg, UsageError, type Verb } from "./verb.ts";

const teamArg = {
  team: { type: "positional", required: true, description: "Name or id" },
} as const;

const memberArgs = {
  ...teamArg,
  user: {
    type: "positional",
    required: true,
    description: "Name, email address or id of the user",
  },
} as const;

const detailArgs = {
  "member-budget": {
    type: "string",
    description: "Budget of each member without an own one",
    valueHint: "dollars",
  },
  "member-per": {
    type: "string",
    description:
      "Reset interval of the budgets of members, or none (default: that of the team's budget)",
    valueHint: "1d|1w|1mo",
  },
  ...limitArgs,
} as const;

const list = defineVerb({
  name: "teams list",
  description: "List teams with their members, spend and budgets.",
  example: "hearth teams list",
  args: { ...rowListArgs, ...gatewayArg },
  run: async ({ url, ...shown }) => {
    const gateway = findGateway(url);
    return printRows(shown, {
      name: "teams",
      empty:
        "No teams found. Create one, for example with `hearth teams new kitchen --budget 20 --per 1mo`.",
      headings: ["name", "id", "members", ...BUDGET_HEADINGS],
      rowOf,
      read: async (page, size) => {
        const path = `/v2/team/list?page=${page}&page_size=${size}`;
        const answer = teamPage.parse(await gateway.ask("GET", path));
        const { teams: rows, total, total_pages: pages } = answer;
        return { rows, total, pages };
      },
    });
  },
});

function rowOf(team: TeamRow): readonly Cell[] {
  return [
    { text: teamName(team), tone: "strong" },
    { text: team.team_id, tone: "soft" },
    { text: grouped(team.members_with_roles.length), right: true },
    ...budgetCells(team),
  ];
}

const create = defineVerb({
  name: "teams new",
  description: "Create a team: users who share a budget.",
  example: "hearth teams new kitchen --budget 20 --per 1mo",
  args: {
    team: {
      type: "positional",
      required: true,
      description: "Name of the team",
    },
    ...detailArgs,
    ...jsonArg,
    ...gatewayArg,
  },
  run: async (args) => {
    const gateway = findGateway(args.url);
    await needFreeName(gateway, args.team);
    const details = detailsIn(args);
    const created = z.looseObject({ team_id: z.string() }).parse(
      await gateway.ask("POST", "/team/new", {
        team_alias: args.team,
        ...details,
      }),
    );
    printAnswer(
      args.json,
      created,
      `Team "${args.team}" created. Add members with \`hearth teams add ${shellWord(args.team)} USER\`.`,
    );
    await complainOfUnknownModels(gateway, details);
    return 0;
  },
});

function detailsIn(
  args: Parameters<typeof limitsIn>[0] & {
    readonly "member-budget"?: string | undefined;
    readonly "member-per"?: string | undefined;
  },
): Readonly<Record<string, unknown>> {
  const budget = args["member-budget"];
  return {
    team_member_budget:
      budget === undefined ? undefined : numberOf("--member-budget", budget),
    team_member_budget_duration: orNone(args["member-per"]),
    ...limitsIn(args),
  };
}

const show = defineVerb({
  name: "teams show",
  description: "Show a team: budget and members.",
  example: "hearth teams show kitchen",
  args: { ...teamArg, ...jsonArg, ...gatewayArg },
  run: async ({ team, json: asJson, url }) => {
    const gateway = findGateway(url);
    const found = await readTeam(gateway, await findTeamId(gateway, team));
    if (asJson === true) {
      printJson(found);
      return 0;
    }
    const { team_info: row, team_memberships: members } = found;
    print(
      paint(
        "strong",
        harmless(`${teamName(row)}${row.blocked ? " (blocked)" : ""}`),
      ),
    );
    print(paint("soft", row.team_id));
    print("");
    printTable(BUDGET_HEADINGS, [budgetCells(row)]);
    print("");
    if (members.length === 0) {
      print(
        `No members. Add one with \`hearth teams add ${shellWord(teamName(row))} USER\`.`,
      );
    } else {
      printTable(
        ["member", "role", ...BUDGET_HEADINGS],
        members.map((member) => memberOf(row, member)),
      );
    }
    return 0;
  },
});

function memberOf(team: TeamRow, member: Member): readonly Cell[] {
  return [
    { text: memberName(team, member.user_id), tone: "strong" },
    { text: member.role === "admin" ? "team admin" : "member" },
    ...budgetCells(member),
  ];
}

/** Throws a UsageError for the name of a team other than `besides`: the gateway allows it, but every command that names the team would then require its id. */
async function needFreeName(
  gateway: AdminApi,
  name: string,
  besides?: string,
): Promise<void> {
  if (await isTeamNamed(gateway, name, besides)) {
    throw new UsageError(
      `team "${name}" already exists: choose another name, or run \`hearth teams update ${shellWord(name)}\` to change it.`,
    );
  }
}

const update = defineVerb({
  name: "teams update",
  description: "Change a team's name or limits.",
  example: "hearth teams update kitchen --budget 30 --per 1mo",
  args: {
    ...teamArg,
    name: { type: "string", description: "New name", valueHint: "name" },
    ...detailArgs,
    ...jsonArg,
    ...gatewayArg,
  },
  run: async (args) => {
    const gateway = findGateway(args.url);
    const changes = { team_alias: args.name, ...detailsIn(args) };
    needChange(changes, update.example);
    const id = await findTeamId(gateway, args.team);
    if (args.name !== undefined) {
      await needFreeName(gateway, args.name, id);
    }
    return sendChange(
      gateway,
      args,
      "/team/update",
      { team_id: id, ...changes },
      `Team "${args.team}" updated. Changes take effect within a second.`,
    );
  },
});

const remove = defineVerb({
  name: "teams delete",
  description: "Delete a team and its keys; their spend stays in the ledger.",
  example: "hearth teams delete kitchen",
  args: { ...teamArg, ...yesArg, ...jsonArg, ...gatewayArg },
  run: async (args) => {
    const gateway = findGateway(args.url);
    const id = await findTeamId(gateway, args.team);
    if (args.yes !== true) {
      await askForName(
        `team "${args.team}"`,
        args.team,
        "This deletes the team and all of its keys.",
      );
    }
    return sendChange(
      gateway,
      args,
      "/team/delete",
      {
        team_ids: [id],
      },
      `Team "${args.team}" and its keys deleted. The spend stays in the ledger.`,
    );
  },
});

const add = defineVerb({
  name: "teams add",
  description: "Add a user to a team; an unknown user is created.",
  example: "hearth teams add kitchen anna --budget 5",
  args: {
    ...memberArgs,
    admin: {
      type: "boolean",
      description: "As team admin: manages members, keys and models",
    },
    budget: limitArgs.budget,
    ...jsonArg,
    ...gatewayArg,
  },
  run: async (args) => {
    const gateway = findGateway(args.url);
    const teamId = await findTeamId(gateway, args.team);
    const known = await findUserId(gateway, args.user);
    if (known !== undefined && (await isMember(gateway, teamId, known))) {
      throw new UsageError(
        `"${args.user}" is already a member of team "${args.team}".`,
      );
    }
    return sendChange(
      gateway,
      args,
      "/team/member_add",
      {
        team_id: teamId,
        member: {
          user_id: known ?? args.user,
          role: args.admin === true ? "admin" : "user",
        },
        max_budget_in_team: limitsIn(args)["max_budget"],
      },
      known === undefined
        ? `User "${args.user}" created and added to team "${args.team}".`
        : `"${args.user}" is now a member of team "${args.team}".`,
    );
  },
});

const removeMember = defineVerb({
  name: "teams remove",
  description: "Remove a user from a team; deletes their keys of the team.",
  example: "hearth teams remove kitchen anna",
  args: { ...memberArgs, ...jsonArg, ...gatewayArg },
  run: async (args) => {
    const gateway = findGateway(args.url);
    const teamId = await findTeamId(gateway, args.team);
    const userId = (await findUserId(gateway, args.user)) ?? args.user;
    if (!(await isMember(gateway, teamId, userId))) {
      throw new UsageError(
        `"${args.user}" is not a member of team "${args.team}": run \`hearth teams show ${shellWord(args.team)}\` for its members.`,
      );
    }
    return sendChange(
      gateway,
      args,
      "/team/member_delete",
      { team_id: teamId, user_id: userId },
      `"${args.user}" removed from team "${args.team}"; their keys of the team are deleted.`,
    );
  },
});

async function isMember(
  gateway: AdminApi,
  teamId: string,
  userId: string,
): Promise<boolean> {
  const { team_memberships: members } = await readTeam(gateway, teamId);
  return members.some(({ user_id }) => user_id === userId);
}

async function readTeam(gateway: AdminApi, id: string) {
  return teamInfo.parse(
    await gateway.ask("GET", `/team/info?team_id=${encodeURIComponent(id)}`),
  );
}

export const teams: Verb = {
  name: "teams",
  description: "Teams: users who share a budget.",
  example: "hearth teams new --help",
  verbs: {
    list: async () => list,
    new: async () => create,
    show: async () => show,
    update: async () => update,
    delete: async () => remove,
    add: async () => add,
    remove: async () => removeMember,
  },
};
