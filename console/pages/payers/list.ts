import { z } from "zod";
import type { Look } from "../../../core/shapes.ts";
import { grouped } from "../../../core/words.ts";
import type { BudgetView } from "./budget.ts";

/** Where a list of keys, users or teams stands; wrong words in an address mean the first page. */
export interface ListAsked {
  readonly search: string;
  readonly state: string;
  readonly sort: string;
  readonly order: "asc" | "desc";
  readonly page: number;
}

export interface Column {
  readonly title: string;
  /** What the gateway calls it where it can sort by it. */
  readonly sort: string | null;
  readonly number?: boolean;
}

export interface ListRow {
  readonly href: string;
  readonly name: string;
  readonly note: string;
  readonly budget: BudgetView;
  readonly cells: readonly string[];
  readonly state: { readonly look: Look; readonly word: string };
}

export interface ListView {
  readonly path: string;
  readonly asked: ListAsked;
  readonly columns: readonly (Column & {
    readonly href: string | null;
    readonly sorted: "ascending" | "descending" | null;
  })[];
  readonly rows: readonly ListRow[];
  readonly range: string;
  readonly previous: string | null;
  readonly next: string | null;
}

const PAGE_SIZE = 25;
const LAST_PAGE = 1_000_000;

/** Reads the query of a list; the first of `sorts` is how it is sorted unless told. */
export function readList(
  query: unknown,
  sorts: readonly string[],
  states: readonly string[] = [],
): ListAsked {
  const [first = ""] = sorts;
  return z
    .object({
      search: z.string().trim().max(256).catch(""),
      state: z.enum(["", ...states]).catch(""),
      sort: z.enum([first, ...sorts]).catch(first),
      order: z.enum(["asc", "desc"]).catch("desc"),
      page: z.coerce.number().int().min(1).max(LAST_PAGE).catch(1),
    })
    .parse(query);
}

/** The same as a query of the gateway's lists, whose pages are called `size` or `page_size`. */
export function askedOf(
  asked: ListAsked,
  sizeName: "size" | "page_size",
): URLSearchParams {
  return new URLSearchParams({
    page: String(asked.page),
    [sizeName]: String(PAGE_SIZE),
    sort_by: asked.sort,
    sort_order: asked.order,
    ...(asked.search === "" ? {} : { search: asked.search }),
    ...(asked.state === "" ? {} : { state: asked.state }),
  });
}

/** The address of the same list with something else. */
export function listHref(
  path: string,
  asked: ListAsked,
  changed: Partial<ListAsked>,
): string {
  const { search, state, sort, order, page } = { ...asked, ...changed };
  const query = new URLSearchParams({
    ...(search === "" ? {} : { search }),
    ...(state === "" ? {} : { state }),
    sort,
    order,
    ...(page === 1 ? {} : { page: String(page) }),
  });
  return `${path}?${query.toString()}`;
}

export function viewList(list: {
  readonly path: string;
  readonly asked: ListAsked;
  readonly columns: readonly Column[];
  readonly rows: readonly ListRow[];
  readonly total: number;
  readonly pages: number;
}): ListView {
  const { path, asked, columns, rows, total, pages } = list;
  const first = (asked.page - 1) * PAGE_SIZE + 1;
  const at = (page: number) => listHref(path, asked, { page });
  return {
    path,
    asked,
    columns: columns.map((column) => ({
      ...column,
      ...sortingOf(path, asked, column),
    })),
    rows,
    range:
      rows.length === 0
        ? `none of ${grouped(total)}`
        : `${grouped(first)} to ${grouped(first + rows.length - 1)} of ${grouped(total)}`,
    previous: asked.page > 1 ? at(Math.min(asked.page - 1, pages || 1)) : null,
    next: asked.page < pages ? at(asked.page + 1) : null,
  };
}

function sortingOf(
  path: string,
  asked: ListAsked,
  { sort, title }: Column,
): Pick<ListView["columns"][number], "href" | "sorted"> {
  if (sort === null) {
    return { href: null, sorted: null };
  }
  const isSorted = asked.sort === sort;
  const turned = asked.order === "asc" ? "desc" : "asc";
  // Names begin with A, amounts and times with the largest.
  const usual = title === "Name" || title === "Owner" ? "asc" : "desc";
  return {
    href: listHref(path, asked, {
      sort,
      order: isSorted ? turned : usual,
      page: 1,
    }),
    sorted: !isSorted
      ? null
      : asked.order === "asc"
        ? "ascending"
        : "descending",
  };
}
