import { z } from "zod";
import {
  keyPage,
  KEY_STATES,
  type UsedKeyRow,
} from "../../../supervisor/gateway/rows.ts";
import { ownerNames } from "../../../supervisor/gateway/owners.ts";
import type { Look } from "../../../core/shapes.ts";
import { ago, grouped, moment, readable } from "../../../core/words.ts";
import { isNearlyUsed, NEARLY_USED_WORD } from "./budget.ts";
import { KEY_STATE_WORDS } from "./key-states.ts";
import { gatewayQuery, listHref, type ListQuery } from "./list-view.ts";
import type { NounFilter, NounList } from "./noun.ts";
import {
  budgetColumns,
  nameColumn,
  stateColumn,
  textColumn,
  type NounColumn,
} from "./noun-columns.ts";
import { KEYS_PATH, type NounContext } from "./noun-context.ts";

export type KeyCounts = Readonly<Record<UsedKeyRow["state"], number>>;

const OWNER_COLUMN: NounColumn<UsedKeyRow> = {
  ...textColumn("Owner", ownerNames),
  sort: "user_id",
  ascending: true,
};

export const KEY_COLUMNS: readonly NounColumn<UsedKeyRow>[] = [
  nameColumn(
    (key) => ({
      href: `${KEYS_PATH}/${key.token}`,
      text: keyTitle(key),
      note: key.key_alias === null ? "" : key.key_name,
    }),
    "Name",
    "key_alias",
  ),
  stateColumn(keyState),
  ...budgetColumns(),
  OWNER_COLUMN,
  {
    ...textColumn("Last used", (key, { now }) => lastUseOf(key, now)),
    sort: "last_used_at",
  },
];

/** The columns on the page of an owner. */
export const OWNED_KEY_COLUMNS: readonly NounColumn<UsedKeyRow>[] =
  KEY_COLUMNS.filter((column) => column !== OWNER_COLUMN);

/** Looking up the last use of each key takes too long for a page of more. */
const MAX_SORTED_BY_USE = 1000;

/** The list of keys; `counter` counts them by state. */
export function keyList(counter: KeyCounter): NounList<UsedKeyRow> {
  return {
    label: "Keys",
    createLabel: "Create key",
    searchLabel: "Search by name, owner, team or last characters",
    subline: "Access, spend and last use of each key.",
    lesson: {
      text: "A key lets a program call models. Create one for each person or program, with a budget. On the command line:",
      command: "hearth keys new --user anna --budget 5 --per 1mo",
    },
    columns: KEY_COLUMNS,
    firstSort: async () =>
      sum(await counter.count()) > MAX_SORTED_BY_USE
        ? "created_at"
        : "last_used_at",
    states: KEY_STATES,
    read: async (context, query) => {
      const [counts, page] = await Promise.all([
        counter.count(),
        readKeys(context, query),
      ]);
      return {
        ...keysHeading(counts),
        rows: page.keys,
        total: page.total_count,
        pages: page.total_pages,
        filters: stateFilters(counts, query),
        empty: sum(counts) === 0,
      };
    },
  };
}

async function readKeys({ api }: NounContext, query: ListQuery) {
  const parameters = gatewayQuery(query, "size");
  parameters.set("return_full_object", "true");
  return keyPage.parse(
    await api.ask("GET", `/key/list?${parameters.toString()}`),
  );
}

/** Counting keys by state reads the spend of every key, so the counts are cached: many open tabs cost no more than one. */
const KEEP_MS = 5000;

/** How many keys there are of each state, read again after a few seconds and after each change. */
export class KeyCounter {
  readonly #context: NounContext;
  #counted:
    | {
        readonly counts: KeyCounts;
        readonly until: number;
        readonly changes: number;
      }
    | undefined;

  constructor(context: NounContext) {
    this.#context = context;
  }

  async count(): Promise<KeyCounts> {
    const changes = this.#context.changes();
    const counted = this.#counted;
    if (counted?.changes === changes && Date.now() < counted.until) {
      return counted.counts;
    }
    const [all, over_budget, blocked, expired] = await Promise.all([
      this.#countOf(""),
      this.#countOf("&state=over_budget"),
      this.#countOf("&state=blocked"),
      this.#countOf("&state=expired"),
    ]);
    const active = Math.max(0, all - over_budget - blocked - expired);
    const counts = { active, over_budget, blocked, expired };
    // A page without keys waits for the first one, so its counts are not cached.
    const until = all > 0 ? Date.now() + KEEP_MS : 0;
    this.#counted = { counts, until, changes };
    return counts;
  }

  async #countOf(filter: string): Promise<number> {
    const answer = await this.#context.api.ask(
      "GET",
      `/key/list?size=1${filter}`,
    );
    return z.object({ total_count: z.number() }).parse(answer).total_count;
  }
}

/** The page's heading. */
export function keysHeading(counts: KeyCounts): {
  readonly title: string;
  readonly look: Look;
} {
  const total = sum(counts);
  if (total === 0) {
    return { title: "No keys yet.", look: "none" };
  }
  const spent = counts.over_budget;
  if (spent > 0) {
    return {
      title:
        total === 1
          ? "The only key is over budget."
          : `${grouped(spent)} of ${grouped(total)} keys ${spent === 1 ? "is" : "are"} over budget.`,
      look: "warn",
    };
  }
  return {
    title:
      total === 1
        ? "1 key, within budget."
        : `${grouped(total)} keys, none over budget.`,
    look: "ok",
  };
}

/** A filter for all keys, and one for each state. */
export function stateFilters(
  counts: KeyCounts,
  query: ListQuery,
): readonly NounFilter[] {
  const filterOf = (state: string, count: number) => ({
    href: listHref(KEYS_PATH, query, { state, page: 1 }),
    count: grouped(count),
    current: query.state === state,
  });
  return [
    { ...filterOf("", sum(counts)), look: "none", word: "all" },
    ...KEY_STATES.map((state) => ({
      ...filterOf(state, counts[state]),
      ...KEY_STATE_WORDS[state],
    })),
  ];
}

export function keyTitle(
  key: Pick<UsedKeyRow, "key_alias" | "key_name">,
): string {
  return readable(key.key_alias ?? key.key_name);
}

export function lastUseOf(key: UsedKeyRow, now: number): string {
  return key.last_used_at === null
    ? "never"
    : ago(Date.parse(key.last_used_at), now);
}

/** An active key that expires shows when; one whose budget is nearly used warns. */
export function keyState(
  key: UsedKeyRow,
  timeZone: string,
): { readonly look: Look; readonly word: string } {
  const { look, word } = KEY_STATE_WORDS[key.state];
  if (key.state !== "active") {
    return { look, word };
  }
  const until =
    key.expires === null
      ? ""
      : ` until ${moment(Date.parse(key.expires), timeZone)}`;
  return isNearlyUsed(key)
    ? {
        look: "warn",
        word: `${NEARLY_USED_WORD}${until === "" ? "" : `, ${word}${until}`}`,
      }
    : { look, word: `${word}${until}` };
}

function sum(counts: KeyCounts): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}
