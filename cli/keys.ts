import { ownerNames } from "../supervisor/gateway/owners.ts";
import { keyPage, type UsedKeyRow } from "../supervisor/gateway/rows.ts";
import { KEY_STATE_WORDS } from "../console/pages/nouns/key-states.ts";
import { signs } from "../core/shapes.ts";
import { BUDGET_HEADINGS, budgetCells } from "./budget-cells.ts";
import { findGateway, gatewayArg } from "./gateway-client.ts";
import { block, remove, rotate, unblock, update } from "./keys-change.ts";
import { create } from "./keys-new.ts";
import { show } from "./keys-show.ts";
import { knownUserId, ownersIn } from "./owner-options.ts";
import { printRows, rowListArgs } from "./row-list.ts";
import type { Cell } from "./terminal.ts";
import { defineVerb, type Verb } from "./verb.ts";

const list = defineVerb({
  name: "keys list",
  description: "List keys with their owners, spend and budgets.",
  example: "hearth keys list --user anna",
  args: {
    user: {
      type: "string",
      description: "Only keys of this user",
      valueHint: "name",
    },
    team: {
      type: "string",
      description: "Only keys of this team",
      valueHint: "name",
    },
    ...rowListArgs,
    ...gatewayArg,
  },
  run: async ({ user, team, url, ...shown }) => {
    const gateway = findGateway(url);
    const filter = {
      ...(await ownersIn(gateway, { team })),
      ...(user === undefined
        ? {}
        : { user_id: await knownUserId(gateway, user) }),
    };
    return printRows(shown, {
      name: "keys",
      empty:
        "No keys found. Create one, for example with `hearth keys new --user anna --budget 5 --per 1mo`.",
      headings: ["state", "alias", "key", "owner", ...BUDGET_HEADINGS],
      rowOf,
      read: async (page, size) => {
        const query = new URLSearchParams({
          ...filter,
          page: String(page),
          size: String(size),
          return_full_object: "true",
        });
        const answer = keyPage.parse(
          await gateway.ask("GET", `/key/list?${query}`),
        );
        const { keys: rows, total_count: total, total_pages: pages } = answer;
        return { rows, total, pages };
      },
    });
  },
});

function rowOf(one: UsedKeyRow): readonly Cell[] {
  return [
    stateOf(one),
    { text: one.key_alias ?? "–", tone: "strong" },
    { text: one.key_name },
    { text: ownerNames(one) },
    ...budgetCells(one),
  ];
}

function stateOf({ state }: UsedKeyRow): Cell {
  const { look, word } = KEY_STATE_WORDS[state];
  return {
    text: `${signs[look]} ${word}`,
    tone: look === "rest" || look === "none" ? "soft" : look,
  };
}

export const keys: Verb = {
  name: "keys",
  description: "Virtual keys of the gateway.",
  example: "hearth keys new --help",
  verbs: {
    new: async () => create,
    list: async () => list,
    show: async () => show,
    update: async () => update,
    rotate: async () => rotate,
    block: async () => block,
    unblock: async () => unblock,
    delete: async () => remove,
  },
};
