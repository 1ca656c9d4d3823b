import type { FastifyInstance } from "fastify";
import { showPage } from "../../http/show-page.ts";
import type { Look } from "../../../core/shapes.ts";
import { grouped } from "../../../core/words.ts";
import { readList, viewList } from "./list-view.ts";
import type { Noun, NounList, NounItem, NounPage } from "./noun.ts";
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

/** A page whose heading is the number of rows. */
export function countedPage<Row>(
  noun: string,
  page: {
    readonly rows: readonly Row[];
    readonly total: number;
    readonly pages: number;
  },
  isSearched: boolean,
): NounPage<Row> {
  return {
    ...countHeading(noun, page.total, isSearched),
    ...page,
    filters: [],
    empty: page.total === 0 && !isSearched,
  };
}

function countHeading(
  noun: string,
  total: number,
  isSearched: boolean,
): { readonly title: string; readonly look: Look } {
  if (total === 0 && !isSearched) {
    return { title: `No ${noun}s yet.`, look: "none" };
  }
  return {
    title: `${grouped(total)} ${noun}${total === 1 ? "" : "s"}${isSearched ? " found" : ""}.`,
    look: "ok",
  };
}
