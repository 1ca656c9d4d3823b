import {
  findTeamId,
  findUserId,
  ownerNames,
} from "../supervisor/gateway/owners.ts";
import { keyPage, type UsedKeyRow } from "../supervisor/gateway/rows.ts";
import { KEY_STATE_WORDS } from "../console/pages/nouns/key-states.ts";
import { signs } from "../core/shapes.ts";
import { BUDGET_HEADINGS, budgetCells } from "./budget-cells.ts";
import { findGateway, gatewayArg } from "./gateway-client.ts";
import { block, remove, rotate, unblock, update } from "./keys-change.ts";
import { create } from "./keys-new.ts";
import { show } from "./keys-show.ts";
import { countOf } from "./limit-options.ts";
import { moreRows, mostArg, PAGE_SIZE, readPages } from "./read-pages.ts";
import { alignColumns, print, type Cell } from "./terminal.ts";
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
    ...mostArg,
    json: { type: "boolean", description: "Print it as JSON" },
    ...gatewayArg,
  },
  run: async ({ user, team, most, json, url }) => {
    const max = countOf("--most", most);
    const gateway = findGateway(url);
    const filter = {
      ...(user === undefined
        ? {}
        : { user_id: (await findUserId(gateway, user)) ?? user }),
      ...(team === undefined
        ? {}
        : { team_id: await findTeamId(gateway, team) }),
    };
    const { rows: keys, total } = await readPages(max, async (page) => {
      const query = new URLSearchParams({
        ...filter,
        page: String(page),
        size: String(PAGE_SIZE),
        return_full_object: "true",
      });
      const answer = keyPage.parse(
        await gateway.ask("GET", `/key/list?${query}`),
      );
      return {
        rows: answer.keys,
        total: answer.total_count,
        pages: answer.total_pages,
      };
    });
    print(
      json === true
        ? JSON.stringify({ keys, total }, null, 2)
        : renderKeys(keys, total),
    );
    return 0;
  },
});

function renderKeys(keys: readonly UsedKeyRow[], total: number): string {
  if (keys.length === 0) {
    return "No keys found. Create one, for example with `hearth keys new --user anna --budget 5 --per 1mo`.";
  }
  const head = ["state", "alias", "key", "owner", ...BUDGET_HEADINGS].map(
    (text): Cell => ({ text, tone: "soft" }),
  );
  return [
    ...alignColumns([head, ...keys.map(rowOf)]),
    ...moreRows(keys.length, total),
  ].join("\n");
}

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
