import type { FastifyInstance } from "fastify";
import { showPage } from "../../http/show-page.ts";
import type { Look } from "../../../core/shapes.ts";
import { counted, grouped } from "../../../core/words.ts";
import { KEY_STATE_WORDS } from "./key-states.ts";
import { listHref, readList, viewList, type ListQuery } from "./list-view.ts";
import type { Noun, NounList, NounItem, NounPage } from "./noun.ts";
import type { NounAddress } from "./noun-address.ts";
import {
  gatewayHandlers,
  KEYS_PATH,
  type NounContext,
} from "./noun-context.ts";

/** GET the list. The gateway searches, sorts and pages it. */
export function registerNounList<Row, Item extends NounItem>(
  server: FastifyInstance,
  context: NounContext,
  { address, list }: Noun<Row, Item>,
): void {
  const { read, columns, states, firstSort, ...words } = list;
  const path = address.list;
  const handle = gatewayHandlers(context);
  server.get(
    path,
    handle(KEYS_PATH, async (request, reply) => {
      const sorts = sortsOf(list, await firstSort?.(context));
      const query = readList(request.query, sorts, states);
      const page = await read(context, query);
      const { title, look, rows, total, pages, filters, empty } = page;
      const at = { timeZone: context.timeZone, now: Date.now() };
      return showPage(
        request,
        reply,
        { title, look, current: KEYS_PATH, refreshes: true },
        "noun-list",
        {
          ...words,
          filters,
          empty,
          path,
          list: viewList({ path, query, columns, rows, total, pages, at }),
        },
      );
    }),
  );
}

/** Sort keys, the default first. */
export function sortsOf(
  { columns }: Pick<NounList<never>, "columns">,
  first: string = "created_at",
): readonly string[] {
  return [
    first,
    "created_at",
    ...columns.flatMap(({ sort }) => (sort === undefined ? [] : [sort])),
  ];
}

/** What a list of users or teams can be restricted to. */
export const BUDGET_STATES = ["over_budget"] as const;

/** One page of the rows that match a query, and how many match in all. */
interface Found<Row> {
  readonly rows: readonly Row[];
  readonly total: number;
  readonly pages: number;
}

/** A page of users or teams under the heading of all of them. */
export async function budgetedPage<Row>(
  noun: string,
  { list: path }: Pick<NounAddress, "list">,
  query: ListQuery,
  find: (query: ListQuery) => Promise<Found<Row>>,
): Promise<NounPage<Row>> {
  const first = { ...query, search: "", page: 1 };
  const found = find(query);
  const isAll = query.search === "" && query.state === "";
  const [page, { total: all }, { total: spent }] = await Promise.all([
    found,
    isAll ? found : find({ ...first, state: "" }),
    find({ ...first, state: "over_budget" }),
  ]);
  const counts = { "": all, over_budget: spent };
  return {
    ...budgetHeading(noun, all, spent, query.search === "" ? null : page.total),
    ...page,
    filters: (["", ...BUDGET_STATES] as const).map((state) => ({
      href: listHref(path, query, { state, page: 1 }),
      count: grouped(counts[state]),
      current: query.state === state,
      ...(state === ""
        ? { look: "none" as const, word: "all" }
        : KEY_STATE_WORDS[state]),
    })),
    empty: all === 0,
  };
}

/** The heading of a list of objects with budgets; `found`: how many match a search, null without one. */
export function budgetHeading(
  noun: string,
  all: number,
  spent: number,
  found: number | null,
): { readonly title: string; readonly look: Look } {
  if (all === 0) {
    return { title: `No ${noun}s yet.`, look: "none" };
  }
  if (found !== null) {
    const matches = found <= 1 ? "matches" : "match";
    return {
      title: `${found === 0 ? "None" : grouped(found)} of ${counted(all, noun)} ${matches} the search.`,
      look: "none",
    };
  }
  if (spent > 0) {
    return {
      title:
        all === 1
          ? `The only ${noun} is over budget.`
          : `${grouped(spent)} of ${counted(all, noun)} ${spent === 1 ? "is" : "are"} over budget.`,
      look: "warn",
    };
  }
  return {
    title:
      all === 1
        ? `1 ${noun}, within budget.`
        : `${counted(all, noun)}, none over budget.`,
    look: "ok",
  };
}
