import type { FastifyInstance } from "fastify";
import { showPage } from "../../http/show-page.ts";
import type { Look } from "../../../core/shapes.ts";
import { counted } from "../../../core/words.ts";
import { KEY_STATE_WORDS } from "./key-states.ts";
import { listHref, readList, viewList, type ListQuery } from "./list-view.ts";
import type { Noun, NounList, NounItem, NounPage } from "./noun.ts";
import type { NounAddress } from "./noun-address.ts";
import {
  showingFailures,
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
  server.get(path, (request, reply) =>
    showingFailures(request, reply, KEYS_PATH, async () => {
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

/** A page whose heading is the number of rows. */
export function countedPage<Row>(
  noun: string,
  { list: path }: Pick<NounAddress, "list">,
  page: {
    readonly rows: readonly Row[];
    readonly total: number;
    readonly pages: number;
  },
  query: ListQuery,
): NounPage<Row> {
  const isAll = query.search === "" && query.state === "";
  return {
    ...countHeading(noun, page.total, query),
    ...page,
    filters: (["", ...BUDGET_STATES] as const).map((state) => ({
      href: listHref(path, query, { state, page: 1 }),
      count: "",
      current: query.state === state,
      ...(state === ""
        ? { look: "none" as const, word: "all" }
        : KEY_STATE_WORDS[state]),
    })),
    empty: page.total === 0 && isAll,
  };
}

function countHeading(
  noun: string,
  total: number,
  { search, state }: ListQuery,
): { readonly title: string; readonly look: Look } {
  const found = search === "" ? "" : " found";
  if (state !== "") {
    return total === 0
      ? { title: `No ${noun}s over budget${found}.`, look: "ok" }
      : {
          title: `${counted(total, noun)} over budget${found}.`,
          look: "warn",
        };
  }
  if (total === 0 && search === "") {
    return { title: `No ${noun}s yet.`, look: "none" };
  }
  return {
    title: `${counted(total, noun)}${found}.`,
    look: "ok",
  };
}
