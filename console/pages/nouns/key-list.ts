import { z } from "zod";
import { MINUTE_MS } from "../../../core/duration.ts";
import {
  keyPage,
  KEY_STATES,
  type UsedKeyRow,
} from "../../../supervisor/gateway/rows.ts";
import { ownerNames } from "../../../supervisor/gateway/owners.ts";
import type { Look } from "../../../core/shapes.ts";
import { ago, grouped, momentFrom, readable } from "../../../core/words.ts";
import { isNearlyUsed, NEARLY_USED_WORD } from "./budget.ts";
import { KEY_STATE_WORDS } from "./key-states.ts";
import { gatewayQuery, listHref, type ListQuery } from "./list-view.ts";
import type { NounFilter, NounList } from "./noun.ts";
import { budgetHeading } from "./noun-list.ts";
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

/** The columns on the page of an owner; `keys`: path of the pages of keys. */
export function ownedKeyColumns(
  keys: string = KEYS_PATH,
): readonly NounColumn<UsedKeyRow>[] {
  return [
    nameColumn(
      (key) => ({
        href: `${keys}/${key.token}`,
        text: keyTitle(key),
        note: key.key_alias === null ? "" : key.key_name,
      }),
      "Name",
      "key_alias",
    ),
    stateColumn(keyState),
    ...budgetColumns(),
    {
      ...textColumn("Last used", (key, { now }) => lastUseOf(key, now)),
      sort: "last_used_at",
    },
  ];
}

export const OWNED_KEY_COLUMNS: readonly NounColumn<UsedKeyRow>[] =
  ownedKeyColumns();

export const KEY_COLUMNS: readonly NounColumn<UsedKeyRow>[] = [
  ...OWNED_KEY_COLUMNS.slice(0, -1),
  OWNER_COLUMN,
  ...OWNED_KEY_COLUMNS.slice(-1),
];

/** Looking up the last use of each key takes too long for a page of more. */
const MAX_SORTED_BY_USE = 1000;

/** The list of keys; `counter` counts them by state. */
export function keyList(counter: KeyCounter): NounList<UsedKeyRow> {
  return {
    label: "Keys",
    createLabel: "Create key",
    searchLabel: "Search by name, owner, team or ending",
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
        ...budgetHeading(
          "key",
          sum(counts),
          counts.over_budget,
          query.search === "" ? null : page.total_count,
        ),
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

/** Counting keys by state reads the spend of every key: no page waits for it again, and many open tabs cost no more than one. */
const FRESH_MS = 5000;
/** A page that was not open for so long waits for new counts. */
const KEEP_MS = MINUTE_MS;

const countedPage = z.object({
  state_counts: z.object({
    active: z.number(),
    over_budget: z.number(),
    blocked: z.number(),
    expired: z.number(),
  }),
});

/** How many keys there are of each state, read again in the background after a few seconds, and at once after each change. */
export class KeyCounter {
  readonly #context: NounContext;
  #counted:
    | {
        readonly counts: KeyCounts;
        readonly at: number;
        readonly changes: number;
      }
    | undefined;
  #counting: Promise<KeyCounts> | undefined;

  constructor(context: NounContext) {
    this.#context = context;
  }

  async count(): Promise<KeyCounts> {
    const counted = this.#counted;
    const age = Date.now() - (counted?.at ?? -Infinity);
    if (
      counted === undefined ||
      counted.changes !== this.#context.changes() ||
      // A page without keys waits for the first one.
      sum(counted.counts) === 0 ||
      age >= KEEP_MS
    ) {
      return this.#read();
    }
    if (age >= FRESH_MS && this.#counting === undefined) {
      this.#counting = this.#read().finally(() => {
        this.#counting = undefined;
      });
      // The list that is read with the counts says what is wrong.
      this.#counting.catch(() => {});
    }
    return counted.counts;
  }

  async #read(): Promise<KeyCounts> {
    const changes = this.#context.changes();
    const at = Date.now();
    const { state_counts: counts } = countedPage.parse(
      await this.#context.api.ask("GET", "/key/list?size=1&count_states=true"),
    );
    this.#counted = { counts, at, changes };
    return counts;
  }
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
  now: number,
): { readonly look: Look; readonly word: string } {
  const { look, word } = KEY_STATE_WORDS[key.state];
  if (key.state !== "active") {
    return { look, word };
  }
  const until =
    key.expires === null
      ? ""
      : ` until ${momentFrom(now, Date.parse(key.expires), timeZone)}`;
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
