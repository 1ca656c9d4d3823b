import type { Look } from "../../../core/shapes.ts";
import { counted, grouped } from "../../../core/words.ts";

/** Something with a page. */
export interface Hit {
  readonly name: string;
  readonly href: string;
  /** What tells it from others of the same name; empty for nothing. */
  readonly note: string;
}

/** The hits of one kind, best first. */
export interface Hits {
  readonly hits: readonly Hit[];
  /** May be more than are listed. */
  readonly total: number;
  /** All of them; null where there is no such page. */
  readonly all: string | null;
}

/** A kind of things with pages: keys, users, models, … */
export interface SearchSource {
  /** "Keys" */
  readonly title: string;
  /** Throws a Failure where it cannot be searched now. */
  readonly find: (query: string) => Promise<Hits>;
}

/** The answer of a source, or why there is none. */
export interface SearchResult {
  readonly title: string;
  readonly found: Hits | { readonly trouble: string };
}

export const MAX_HITS = 8;

/** Those whose name or note contains the text in any case, names that start with it first. */
export function matching(all: readonly Hit[], query: string): Hits {
  const needle = query.toLowerCase();
  const found = all
    .filter(({ name, note }) =>
      `${name}\n${note}`.toLowerCase().includes(needle),
    )
    .toSorted((a, b) => rank(a, needle) - rank(b, needle));
  return { hits: found.slice(0, MAX_HITS), total: found.length, all: null };
}

function rank({ name }: Hit, needle: string): number {
  const place = name.toLowerCase().indexOf(needle);
  return place === 0 ? 0 : place > 0 ? 1 : 2;
}

/** The page of results. */
export function viewSearch(query: string, results: readonly SearchResult[]) {
  const groups = results.flatMap(({ title, found }) =>
    "trouble" in found || found.total === 0
      ? []
      : [
          {
            title,
            hits: found.hits,
            all:
              found.all !== null && found.total > found.hits.length
                ? { href: found.all, text: `Show all ${grouped(found.total)}` }
                : null,
            more:
              found.all === null && found.total > found.hits.length
                ? `${grouped(found.total - found.hits.length)} more: type more letters.`
                : null,
          },
        ],
  );
  const troubles = troublesOf(results);
  const total = results.reduce(
    (sum, { found }) => sum + ("trouble" in found ? 0 : found.total),
    0,
  );
  return { query, groups, troubles, ...headingOf(query, total, troubles) };
}

/** A sentence for each trouble, with everything that it hides. */
function troublesOf(results: readonly SearchResult[]): readonly string[] {
  const hidden = new Map<string, string[]>();
  for (const { title, found } of results) {
    if ("trouble" in found) {
      hidden.set(found.trouble, [...(hidden.get(found.trouble) ?? []), title]);
    }
  }
  return [...hidden].map(
    ([trouble, titles]) => `${titles.join(", ")} not searched: ${trouble}`,
  );
}

function headingOf(
  query: string,
  total: number,
  troubles: readonly string[],
): { readonly title: string; readonly look: Look } {
  if (query === "") {
    return { title: "Search", look: "none" };
  }
  const words = total === 0 ? "No results" : counted(total, "result");
  return {
    title: `${words} for “${query}”.`,
    look: troubles.length > 0 ? "warn" : total === 0 ? "none" : "ok",
  };
}
