import { keyStateWords } from "./key-states.ts";
import {
  KEY_STATES,
  type UsedKeyRow,
} from "../../../supervisor/gateway/rows.ts";
import { viewBudget } from "../payers/budget.ts";
import {
  listHref,
  viewList,
  type Column,
  type ListAsked,
  type ListView,
} from "../payers/list.ts";
import type { Look } from "../../../core/shapes.ts";
import { ago, grouped, moment, readable } from "../../../core/words.ts";

export type KeyCounts = Readonly<Record<UsedKeyRow["state"], number>>;

/** The first is how the list is sorted unless told. */
export const KEY_SORTS = [
  "created_at",
  "key_alias",
  "user_id",
  "spend",
  "budget_used",
] as const;

const COLUMNS: readonly Column[] = [
  { title: "Name", sort: "key_alias" },
  { title: "State", sort: null },
  { title: "Spent", sort: "spend", number: true },
  { title: "Budget used", sort: "budget_used", number: true },
  { title: "Owner", sort: "user_id" },
  { title: "Last used", sort: null },
];

export interface KeysView {
  readonly list: ListView;
  readonly subline: string;
  /** A filter each. */
  readonly states: readonly {
    readonly href: string;
    readonly look: Look;
    readonly word: string;
    readonly count: string;
    readonly current: boolean;
  }[];
  /** There is none at all yet. */
  readonly empty: boolean;
}

/** The page's heading. */
export function judgeKeys(counts: KeyCounts): {
  readonly title: string;
  readonly look: Look;
} {
  const total = sum(counts);
  if (total === 0) {
    return { title: "There is no key yet.", look: "none" };
  }
  const spent = counts.over_budget;
  if (spent > 0) {
    return {
      title:
        total === 1
          ? "The one key has used up its budget."
          : `${grouped(spent)} of ${grouped(total)} keys ${spent === 1 ? "has" : "have"} used up ${spent === 1 ? "its budget" : "their budgets"}.`,
      look: "warn",
    };
  }
  return {
    title:
      total === 1
        ? "One key, within its budget."
        : `${grouped(total)} keys, none over its budget.`,
    look: "ok",
  };
}

export function viewKeys(facts: {
  readonly asked: ListAsked;
  readonly counts: KeyCounts;
  readonly keys: readonly UsedKeyRow[];
  readonly total: number;
  readonly pages: number;
  readonly timeZone: string;
  readonly now: number;
}): KeysView {
  const { asked, counts, timeZone, now } = facts;
  const at = (state: string) => listHref("/keys", asked, { state, page: 1 });
  const total = sum(counts);
  return {
    list: viewList({
      path: "/keys",
      asked,
      columns: COLUMNS,
      rows: facts.keys.map((key) => {
        const budget = viewBudget(key, timeZone);
        return {
          href: `/keys/${key.token}`,
          name: nameOf(key),
          note: key.key_alias === null ? "" : key.key_name,
          budget,
          cells: [ownerOf(key), lastUseOf(key, now)],
          state: stateOf(key, timeZone),
        };
      }),
      total: facts.total,
      pages: facts.pages,
    }),
    subline:
      "Who may call the gateway, what it has spent of its budget and when it was last used.",
    states: [
      {
        href: at(""),
        look: "none" as const,
        word: "all",
        count: grouped(total),
        current: asked.state === "",
      },
      ...KEY_STATES.map((state) => ({
        href: at(state),
        ...keyStateWords[state],
        count: grouped(counts[state]),
        current: asked.state === state,
      })),
    ],
    empty: total === 0,
  };
}

export function nameOf(
  key: Pick<UsedKeyRow, "key_alias" | "key_name">,
): string {
  return readable(key.key_alias ?? key.key_name);
}

export function ownerOf(key: Pick<UsedKeyRow, "user_id" | "team_id">): string {
  const owners = [
    ...(key.user_id === null ? [] : [readable(key.user_id)]),
    ...(key.team_id === null ? [] : [`team ${readable(key.team_id)}`]),
  ];
  return owners.length === 0 ? "nobody" : owners.join(", ");
}

export function lastUseOf(key: UsedKeyRow, now: number): string {
  return key.last_used_at === null
    ? "never"
    : ago(Date.parse(key.last_used_at), now);
}

/** A key that works, but not for ever, says until when. */
export function stateOf(
  key: UsedKeyRow,
  timeZone: string,
): { readonly look: Look; readonly word: string } {
  const { look, word } = keyStateWords[key.state];
  return key.state === "active" && key.expires !== null
    ? {
        look,
        word: `${word} until ${moment(Date.parse(key.expires), timeZone)}`,
      }
    : { look, word };
}

function sum(counts: KeyCounts): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}
