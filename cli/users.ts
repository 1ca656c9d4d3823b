import { z } from "zod";
import { shellWord } from "../core/shell.ts";
import { grouped } from "../core/words.ts";
import { Refusal, type AdminApi } from "../supervisor/gateway/admin-api.ts";
import { teamName, userName } from "../supervisor/gateway/owners.ts";
import {
  userInfo,
  userPage,
  type ListedUser,
} from "../supervisor/gateway/rows.ts";
import { keyTitle } from "../console/pages/nouns/key-list.ts";
import { askForName, yesArg } from "./ask-for-name.ts";
import { BUDGET_HEADINGS, budgetCells } from "./budget-cells.ts";
import { findGateway, gatewayArg } from "./gateway-client.ts";
import { limitArgs, limitsIn, needChange } from "./limit-options.ts";
import { knownUserId } from "./owner-options.ts";
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

/** The status of a user that already exists. */
const CONFLICT = 409;

const userArg = {
  user: {
    type: "positional",
    required: true,
    description: "Name, email address or id",
  },
} as const;

const detailArgs = {
  "full-name": {
    type: "string",
    description: "Full name, shown instead of the short one",
    valueHint: "name",
  },
  email: { type: "string", description: "Email address", valueHint: "address" },
  role: {
    type: "string",
    description:
      "internal_user, internal_user_viewer, proxy_admin_viewer or proxy_admin",
    valueHint: "role",
  },
  ...limitArgs,
} as const;

const list = defineVerb({
  name: "users list",
  description: "List users with their keys, spend and budgets.",
  example: "hearth users list --search anna",
  args: {
    search: {
      type: "string",
      description: "Only users with this in their name or email address",
      valueHint: "text",
    },
    ...rowListArgs,
    ...gatewayArg,
  },
  run: async ({ search, url, ...shown }) => {
    const gateway = findGateway(url);
    return printRows(shown, {
      name: "users",
      empty:
        "No users found. Create one, for example with `hearth users new anna --budget 20 --per 1mo`.",
      headings: ["name", "id", "keys", ...BUDGET_HEADINGS, "role"],
      rowOf,
      read: async (page, size) => {
        const query = new URLSearchParams({
          page: String(page),
          page_size: String(size),
          ...(search === undefined ? {} : { search }),
        });
        const answer = userPage.parse(
          await gateway.ask("GET", `/user/list?${query}`),
        );
        const { users: rows, total, total_pages: pages } = answer;
        return { rows, total, pages };
      },
    });
  },
});

function rowOf(user: ListedUser): readonly Cell[] {
  return [
    { text: userName(user), tone: "strong" },
    { text: user.user_id, tone: "soft" },
    { text: grouped(user.key_count), right: true },
    ...budgetCells(user),
    { text: user.user_role, tone: "soft" },
  ];
}

const create = defineVerb({
  name: "users new",
  description: "Create a user, whose budget applies to all of their keys.",
  example: "hearth users new anna --budget 20 --per 1mo",
  args: {
    user: {
      type: "positional",
      required: true,
      description: "Short, permanent name, such as anna",
    },
    ...detailArgs,
    ...jsonArg,
    ...gatewayArg,
  },
  run: async (args) => {
    const gateway = findGateway(args.url);
    const details = detailsIn(args);
    const created = z
      .looseObject({ user_id: z.string() })
      .parse(await createUser(gateway, args.user, details));
    printAnswer(
      args.json,
      created,
      `User "${args.user}" created. Create a key with \`hearth keys new --user ${shellWord(args.user)}\`.`,
    );
    await complainOfUnknownModels(gateway, details);
    return 0;
  },
});

/** Throws a UsageError if there is such a user. */
async function createUser(
  gateway: AdminApi,
  user: string,
  details: Readonly<Record<string, unknown>>,
): Promise<unknown> {
  try {
    return await gateway.ask("POST", "/user/new", {
      user_id: user,
      ...details,
      auto_create_key: false,
    });
  } catch (error) {
    throw error instanceof Refusal && error.status === CONFLICT
      ? new UsageError(
          `user "${user}" already exists: choose another name, or run \`hearth users update ${shellWord(user)}\` to change it.`,
        )
      : error;
  }
}

function detailsIn(
  args: Parameters<typeof limitsIn>[0] & {
    readonly "full-name"?: string | undefined;
    readonly email?: string | undefined;
    readonly role?: string | undefined;
  },
): Readonly<Record<string, unknown>> {
  return {
    user_alias: args["full-name"],
    user_email: args.email,
    user_role: args.role,
    ...limitsIn(args),
  };
}

const show = defineVerb({
  name: "users show",
  description: "Show a user: budget, keys and teams.",
  example: "hearth users show anna",
  args: { ...userArg, ...jsonArg, ...gatewayArg },
  run: async ({ user, json: asJson, url }) => {
    const gateway = findGateway(url);
    const found = userInfo.parse(
      await gateway.ask(
        "GET",
        `/user/info?user_id=${encodeURIComponent(await knownUserId(gateway, user))}`,
      ),
    );
    if (asJson === true) {
      printJson(found);
      return 0;
    }
    const { user_info: row, keys, teams } = found;
    print(paint("strong", harmless(userName(row))));
    print(
      paint(
        "soft",
        [row.user_id, row.user_email, row.user_role]
          .filter((fact) => fact !== null && fact !== userName(row))
          .join(" · "),
      ),
    );
    print("");
    printTable(BUDGET_HEADINGS, [budgetCells(row)]);
    print("");
    print(
      `Keys: ${keys.length === 0 ? "none" : keys.map(keyTitle).join(", ")}`,
    );
    print(
      `Teams: ${teams.length === 0 ? "none" : teams.map(teamName).join(", ")}`,
    );
    return 0;
  },
});

const update = defineVerb({
  name: "users update",
  description: "Change a user's name, role or limits.",
  example: "hearth users update anna --budget 30 --per 1mo",
  args: { ...userArg, ...detailArgs, ...jsonArg, ...gatewayArg },
  run: async (args) => {
    const gateway = findGateway(args.url);
    const changes = detailsIn(args);
    needChange(changes, update.example);
    return sendChange(
      gateway,
      args,
      "/user/update",
      { user_id: await knownUserId(gateway, args.user), ...changes },
      `User "${args.user}" updated. Changes take effect within a second.`,
    );
  },
});

const remove = defineVerb({
  name: "users delete",
  description: "Delete a user and their keys; their spend stays in the ledger.",
  example: "hearth users delete anna",
  args: { ...userArg, ...yesArg, ...jsonArg, ...gatewayArg },
  run: async (args) => {
    const { user } = args;
    const gateway = findGateway(args.url);
    const id = await knownUserId(gateway, user);
    if (args.yes !== true) {
      await askForName(
        `user "${user}"`,
        user,
        "This deletes the user and all of their keys.",
      );
    }
    return sendChange(
      gateway,
      args,
      "/user/delete",
      { user_ids: [id] },
      `User "${user}" and their keys deleted. The spend stays in the ledger.`,
    );
  },
});

export const users: Verb = {
  name: "users",
  description: "Users, whose budgets apply to all of their keys.",
  example: "hearth users new --help",
  verbs: {
    list: async () => list,
    new: async () => create,
    show: async () => show,
    update: async () => update,
    delete: async () => remove,
    invite: async () => (await import("./users-invite.ts")).invite,
  },
};
