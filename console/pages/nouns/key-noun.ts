import { z } from "zod";
import { Refusal } from "../../../supervisor/gateway/admin-api.ts";
import { isKeyHash } from "../../../supervisor/gateway/key-hash.ts";
import {
  usedKeyRow,
  type UsedKeyRow,
} from "../../../supervisor/gateway/rows.ts";
import { momentFrom } from "../../../core/words.ts";
import { readKeyUse, type KeyUse } from "./key-facts.ts";
import { keyList, KeyCounter, keyTitle } from "./key-list.ts";
import { graceField, showSecret } from "./key-secret.ts";
import { viewKey, type KeyView } from "./key-view.ts";
import { LIMIT_FIELDS } from "./limit-fields.ts";
import type { Noun, NounAction, NounItem } from "./noun.ts";
import { addressInPath } from "./noun-address.ts";
import { KEYS_PATH, type NounContext } from "./noun-context.ts";
import type { Choice, FieldContext, NounField } from "./noun-fields.ts";
import { TEAM_BY_NAME, USER_BY_NAME } from "./owner-fields.ts";

export interface Key extends NounItem {
  readonly row: UsedKeyRow;
  /** Only on its page. */
  readonly use?: KeyUse;
}

const LIFETIMES: readonly Choice[] = [
  ["1d", "in one day"],
  ["1w", "in one week"],
  ["30d", "in 30 days"],
  ["90d", "in 90 days"],
  ["365d", "in one year"],
];

export const KEY_FIELDS: readonly NounField[] = [
  {
    name: "key_alias",
    label: "Name",
    note: "Unique, for example anna-laptop.",
  },
  {
    name: "user_id",
    label: "User",
    note: "Owner (optional): a name or email address. Created if it does not exist.",
    preset: "user",
    ...USER_BY_NAME,
  },
  {
    name: "team_id",
    label: "Team",
    note: "Team that pays (optional), by name.",
    preset: "team",
    ...TEAM_BY_NAME,
  },
  {
    name: "duration",
    label: "Expires",
    type: "choice",
    choices: lifetimesOf,
    body: (duration) => (duration === "never" ? null : duration),
  },
  {
    name: "store_prompts",
    label: "Prompts and answers",
    note: "Stored ones have no API keys, and the audit log records each view.",
    type: "choice",
    choices: () => [
      ["false", "As configured; not stored by default"],
      ["true", "Store those of this key"],
    ],
    body: (typed) => typed === "true",
  },
  ...LIMIT_FIELDS,
];

export const KEY_ACTIONS: readonly NounAction<Key>[] = [
  {
    verb: "block",
    label: "Block",
    question: ({ title }) => `Deny all calls of ${title} from now on?`,
    applies: ({ row }) => !row.blocked,
    destroys: true,
    path: "/key/block",
    body: ({ id }) => ({ key: id }),
    finish: ({ title }) =>
      `Key "${title}" blocked. Its calls are denied within a second.`,
  },
  {
    verb: "unblock",
    label: "Unblock",
    question: ({ title }) => `Allow calls of ${title} again?`,
    applies: ({ row }) => row.blocked,
    path: "/key/unblock",
    body: ({ id }) => ({ key: id }),
    finish: ({ title }) => `Key "${title}" unblocked.`,
  },
  {
    verb: "rotate",
    label: "Rotate secret",
    question: () =>
      "The key keeps its limits, budget and history. The new secret is shown once.",
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
      "All its calls are denied from now on. This cannot be undone. Its spend stays in the ledger.",
    deletes: true,
    path: "/key/delete",
    body: ({ id }) => ({ keys: [id] }),
    finish: ({ title }) =>
      `Key "${title}" deleted. Its spend stays in the ledger.`,
  },
];

/** The pages of keys. The id of a key is its hash. */
export function keyNoun(context: NounContext): Noun<UsedKeyRow, Key> {
  return {
    name: "Key",
    address: addressInPath(KEYS_PATH),
    list: keyList(new KeyCounter(context)),
    form: {
      fields: KEY_FIELDS,
      create: {
        title: "Create a key",
        button: "Create key",
        intro: "The key is shown once, on the next page.",
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
    detail: {
      template: "key",
      find: findKeyWithUse,
      view: readKeyView,
      actions: KEY_ACTIONS,
    },
  };
}

export async function findKey({ api }: NounContext, id: string): Promise<Key> {
  const answer = await api.ask("GET", `/key/info?key=${tokenOf(id)}`);
  const { info: row } = z.object({ info: usedKeyRow }).parse(answer);
  return { id, title: keyTitle(row), row };
}

/** At once: its use is found by the hash alone. */
export async function findKeyWithUse(
  context: NounContext,
  id: string,
): Promise<Key> {
  const token = tokenOf(id);
  const [key, use] = await Promise.all([
    findKey(context, token),
    readKeyUse(context.api, token),
  ]);
  return { ...key, use };
}

/** Accepts hashes only: addresses, and keys in them, end up in browser histories. */
function tokenOf(text: string): string {
  if (isKeyHash(text)) {
    return text;
  }
  throw new Refusal("Key not found.", 404, null);
}

async function readKeyView(
  { api, timeZone }: NounContext,
  { row, use }: Key,
): Promise<KeyView> {
  return viewKey({
    ...(use ?? (await readKeyUse(api, row.token))),
    key: row,
    timeZone,
    now: Date.now(),
  });
}

/** When the key expires: a duration from now, `never`, or nothing for no change. */
function lifetimesOf({ row, timeZone }: FieldContext): readonly Choice[] {
  if (row === null) {
    return [["", "never"], ...LIFETIMES];
  }
  const { expires } = row;
  return typeof expires !== "string"
    ? [["", "never (unchanged)"], ...LIFETIMES]
    : [
        [
          "",
          `${momentFrom(Date.now(), Date.parse(expires), timeZone)} (unchanged)`,
        ],
        ...LIFETIMES,
        ["never", "never"],
      ];
}
