import { z } from "zod";
import { Refusal } from "../../../supervisor/gateway/admin-api.ts";
import {
  teamPage,
  usedKeyRow,
  userPage,
  type UsedKeyRow,
} from "../../../supervisor/gateway/rows.ts";
import {
  calls,
  keyUsage,
  refusals,
} from "../../../supervisor/gateway/usage.ts";
import { moment } from "../../../core/words.ts";
import { keyList, KeyCounter, keyTitle } from "./key-list.ts";
import { graceField, showSecret } from "./key-secret.ts";
import { viewKey, type KeyView } from "./key-view.ts";
import { LIMIT_FIELDS } from "./limit-fields.ts";
import type { Noun, NounAction, NounItem } from "./noun.ts";
import { addressInPath } from "./noun-address.ts";
import { KEYS_PATH, type NounContext } from "./noun-context.ts";
import type { Choice, FieldContext, NounField } from "./noun-fields.ts";

interface Key extends NounItem {
  readonly row: UsedKeyRow;
}

const LIVES: readonly Choice[] = [
  ["1d", "one day"],
  ["1w", "one week"],
  ["30d", "30 days"],
  ["90d", "90 days"],
  ["365d", "one year"],
];

export const KEY_FIELDS: readonly NounField[] = [
  {
    name: "key_alias",
    label: "Name",
    note: "Whose or what it is for, such as anna-laptop. No two keys have the same.",
  },
  {
    name: "user_id",
    label: "User",
    note: "Whose spend and budget count, too; made if new. Empty: nobody.",
    preset: "user",
    suggestions: suggestUsers,
  },
  {
    name: "team_id",
    label: "Team",
    note: "The team that pays; empty: none.",
    preset: "team",
    suggestions: suggestTeams,
  },
  {
    name: "duration",
    label: "It works for",
    type: "choice",
    choices: livesOf,
    body: (duration) => (duration === "never" ? null : duration),
  },
  ...LIMIT_FIELDS,
];

const ACTIONS: readonly NounAction<Key>[] = [
  {
    verb: "block",
    label: "Block",
    question: ({ title }) => `Refuse the calls of ${title} from now on?`,
    applies: ({ row }) => !row.blocked,
    destroys: true,
    path: "/key/block",
    body: ({ id }) => ({ key: id }),
    finish: ({ title }) =>
      `${title} is blocked: its calls are refused within a second.`,
  },
  {
    verb: "unblock",
    label: "Unblock",
    question: ({ title }) => `Let ${title} call again?`,
    applies: ({ row }) => row.blocked,
    path: "/key/unblock",
    body: ({ id }) => ({ key: id }),
    finish: ({ title }) => `${title} works again.`,
  },
  {
    verb: "rotate",
    label: "New secret",
    question: () =>
      "Its limits, budget and history go on under the new secret, which is shown once.",
    fields: [graceField],
    path: "/key/regenerate",
    body: ({ id }, { grace = "" }) => ({
      key: id,
      ...(typeof grace !== "string" || grace === ""
        ? {}
        : { grace_period: grace }),
    }),
    finish: {
      show: (request, reply, context, answer, { grace = "" }) =>
        showSecret(
          request,
          reply,
          context,
          answer,
          typeof grace === "string" ? grace : "",
        ),
    },
  },
  {
    verb: "delete",
    label: "Delete",
    question: () =>
      "Its calls are refused from now on, for ever. What it spent stays in the ledger.",
    deletes: true,
    path: "/key/delete",
    body: ({ id }) => ({ keys: [id] }),
    finish: ({ title }) =>
      `${title} is deleted; what it spent stays in the ledger.`,
  },
];

/** A console's pages of keys; their id is the key's hash. */
export function keyNoun(context: NounContext): Noun<UsedKeyRow, Key> {
  return {
    name: "key",
    address: addressInPath(KEYS_PATH, "token"),
    list: keyList(new KeyCounter(context)),
    form: {
      fields: KEY_FIELDS,
      create: {
        title: "Make a key",
        button: "Make the key",
        intro: "It is shown once, on the next page.",
        path: "/key/generate",
        finish: (request, reply, context, answer) =>
          showSecret(request, reply, context, answer, null),
      },
      edit: {
        path: "/key/update",
        idName: "key",
        titleAfter: ({ row }, { key_alias: alias }) =>
          typeof alias === "string" ? alias : row.key_name,
      },
    },
    find: findKey,
    detail: { template: "key", view: readKeyView, actions: ACTIONS },
  };
}

async function findKey({ api }: NounContext, id: string): Promise<Key> {
  const answer = await api.ask("GET", `/key/info?key=${tokenOf(id)}`);
  const { info: row } = z.object({ info: usedKeyRow }).parse(answer);
  return { id, title: keyTitle(row), row };
}

/** Never a key itself: addresses end up in histories. */
function tokenOf(text: string): string {
  if (/^[0-9a-f]{64}$/.test(text)) {
    return text;
  }
  throw new Refusal(
    "There is no such key: the list has all of them.",
    404,
    null,
  );
}

const SHOWN_CALLS = 10;
const SHOWN_REFUSALS = 20;

async function readKeyView(
  { api, timeZone }: NounContext,
  { id, row }: Key,
): Promise<KeyView> {
  const [usage, refused, last] = await Promise.all([
    api.ask("GET", `/key/usage?key=${id}`),
    api.ask("GET", `/refusals?api_key=${id}&page_size=${SHOWN_REFUSALS}`),
    api.ask("GET", `/spend/logs?api_key=${id}&page_size=${SHOWN_CALLS}`),
  ]);
  return viewKey({
    key: row,
    timeZone,
    now: Date.now(),
    usage: keyUsage.parse(usage),
    refusals: refusals.parse(refused),
    calls: calls.parse(last),
  });
}

/** So many users and teams are proposed as owners. */
const PROPOSED = 100;

async function suggestUsers({ api }: NounContext): Promise<readonly string[]> {
  const answer = await api.ask("GET", `/user/list?page_size=${PROPOSED}`);
  return userPage.parse(answer).users.map((user) => user.user_id);
}

async function suggestTeams({ api }: NounContext): Promise<readonly string[]> {
  const answer = await api.ask("GET", `/v2/team/list?page_size=${PROPOSED}`);
  return teamPage.parse(answer).teams.map((team) => team.team_id);
}

/** How long it works from now on: a duration, `never`, or nothing, which leaves it as it is. */
function livesOf({ row, timeZone }: FieldContext): readonly Choice[] {
  const fresh = LIVES.map(([value, words]): Choice => [
    value,
    `${words} from now`,
  ]);
  if (row === null) {
    return [["", "ever"], ...fresh];
  }
  const { expires } = row;
  return typeof expires !== "string"
    ? [["", "ever, as now"], ...fresh]
    : [
        ["", `until ${moment(Date.parse(expires), timeZone)}, as now`],
        ...fresh,
        ["never", "ever"],
      ];
}
