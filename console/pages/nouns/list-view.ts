import { z } from "zod";
import { grouped } from "../../../core/words.ts";
import {
  cellsOf,
  type Cell,
  type CellContext,
  type NounColumn,
} from "./noun-columns.ts";

/** The part of a list that is shown; an invalid address means the first page. */
export interface ListQuery {
  readonly search: string;
  readonly state: string;
  readonly sort: string;
  readonly order: "asc" | "desc";
  readonly page: number;
}

export interface ListHead {
  readonly title: string;
  readonly number: boolean;
  readonly href: string | null;
  readonly sorted: "ascending" | "descending" | null;
}

interface ListView {
  readonly path: string;
  readonly query: ListQuery;
  readonly columns: readonly ListHead[];
  readonly rows: readonly (readonly Cell[])[];
  readonly range: string;
  readonly previous: string | null;
  readonly next: string | null;
}

const PAGE_SIZE = 25;
const LAST_PAGE = 1_000_000;

/** Reads the query of a list; the first of `sorts`, in `firstOrder`, is the default. */
export function readList(
  query: unknown,
  sorts: readonly string[],
  states: readonly string[] = [],
  firstOrder: ListQuery["order"] = "desc",
): ListQuery {
  const [first = ""] = sorts;
  return z
    .object({
      search: z.string().trim().max(256).catch(""),
      state: z.enum(["", ...states]).catch(""),
      sort: z.enum([first, ...sorts]).catch(first),
      order: z.enum(["asc", "desc"]).catch(firstOrder),
      page: z.coerce.number().int().min(1).max(LAST_PAGE).catch(1),
    })
    .parse(query);
}

/** The corresponding query of the gateway, which calls the page size `size` or `page_size`. */
export function gatewayQuery(
  query: ListQuery,
  sizeName: "size" | "page_size",
): URLSearchParams {
  return new URLSearchParams({
    page: String(query.page),
    [sizeName]: String(PAGE_SIZE),
    sort_by: query.sort,
    sort_order: query.order,
    ...(query.search === "" ? {} : { search: query.search }),
    ...(query.state === "" ? {} : { state: query.state }),
  });
}

/** The page of a list that is known as a whole. */
export function pageOf<Row>(
  all: readonly Row[],
  { page }: ListQuery,
): { readonly rows: readonly Row[]; readonly pages: number } {
  return {
    rows: all.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE),
    pages: Math.ceil(all.length / PAGE_SIZE),
  };
}

/** The address of the list with some parameters changed. */
export function listHref(
  path: string,
  query: ListQuery,
  changed: Partial<ListQuery>,
): string {
  const { search, state, sort, order, page } = { ...query, ...changed };
  const parameters = new URLSearchParams({
    ...(search === "" ? {} : { search }),
    ...(state === "" ? {} : { state }),
    sort,
    order,
    ...(page === 1 ? {} : { page: String(page) }),
  });
  return `${path}?${parameters.toString()}`;
}

export function viewList<Row>(list: {
  readonly path: string;
  readonly query: ListQuery;
  readonly columns: readonly NounColumn<Row>[];
  readonly rows: readonly Row[];
  readonly total: number;
  readonly pages: number;
  readonly at: CellContext;
}): ListView {
  const { path, query, rows, total, pages } = list;
  const first = (query.page - 1) * PAGE_SIZE + 1;
  const hrefOf = (page: number) => listHref(path, query, { page });
  return {
    path,
    query,
    columns: list.columns.map((column) => headOf(column, path, query)),
    rows: cellsOf(list.columns, rows, list.at),
    range:
      rows.length === 0
        ? `0 of ${grouped(total)}`
        : `${grouped(first)} to ${grouped(first + rows.length - 1)} of ${grouped(total)}`,
    previous:
      query.page > 1 ? hrefOf(Math.min(query.page - 1, pages || 1)) : null,
    next: query.page < pages ? hrefOf(query.page + 1) : null,
  };
}

/** Heads of a table that is not sortable. */
export function plainHeads(
  columns: readonly NounColumn<never>[],
): readonly ListHead[] {
  return columns.map(({ title, number = false }) => ({
    title,
    number,
    href: null,
    sorted: null,
  }));
}

function headOf(
  { title, number = false, sort, ascending = false }: NounColumn<never>,
  path: string,
  query: ListQuery,
): ListHead {
  if (sort === undefined) {
    return { title, number, href: null, sorted: null };
  }
  const isSorted = query.sort === sort;
  const reversed = query.order === "asc" ? "desc" : "asc";
  const usual = ascending ? "asc" : "desc";
  const order = isSorted ? reversed : usual;
  const sorted = query.order === "asc" ? "ascending" : "descending";
  return {
    title,
    number,
    href: listHref(path, query, { sort, order, page: 1 }),
    sorted: isSorted ? sorted : null,
  };
}
