import type { FastifyInstance } from "fastify";
import { Failure } from "../../../core/failure.ts";
import { readable } from "../../../core/words.ts";
import { showPage } from "../../http/show-page.ts";
import { searchSources, type SearchParts } from "./search-sources.ts";
import {
  viewSearch,
  type SearchResult,
  type SearchSource,
} from "./search-view.ts";

const MAX_LENGTH = 200;

interface SearchRequest {
  readonly Querystring: { readonly q?: unknown };
}

/** GET /search?q= */
export function registerSearchPage(
  server: FastifyInstance,
  parts: SearchParts,
): void {
  const sources = searchSources(parts);
  server.get<SearchRequest>("/search", async (request, reply) => {
    const { q } = request.query;
    const query = readable(String(q ?? ""))
      .trim()
      .slice(0, MAX_LENGTH);
    const view = viewSearch(
      query,
      query === "" ? [] : await ask(sources, query),
    );
    const { title, look } = view;
    return showPage(
      request,
      reply,
      { title, look, current: null },
      "search",
      view,
    );
  });
}

/** All sources at once; one that fails does not hide the others. */
function ask(
  sources: readonly SearchSource[],
  query: string,
): Promise<readonly SearchResult[]> {
  return Promise.all(
    sources.map(async ({ title, find }) => {
      try {
        return { title, found: await find(query) };
      } catch (error) {
        if (!(error instanceof Failure)) {
          throw error;
        }
        return { title, found: { trouble: error.sentences.join(" ") } };
      }
    }),
  );
}
