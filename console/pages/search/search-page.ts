import type { FastifyInstance } from "fastify";
import { Failure } from "../../../core/failure.ts";
import { readable } from "../../../core/words.ts";
import { showPage } from "../../http/show-page.ts";
import type { Status } from "../../../supervisor/status.ts";
import { searchSources, type SearchedParts } from "./search-sources.ts";
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
  parts: Omit<SearchedParts, "status"> & { readonly status: () => Status },
): void {
  server.get<SearchRequest>("/search", async (request, reply) => {
    const { q } = request.query;
    const query = readable(String(q ?? ""))
      .trim()
      .slice(0, MAX_LENGTH);
    const status = parts.status();
    const sources = searchSources({ ...parts, status });
    const view = viewSearch(
      query,
      query === "" ? [] : await ask(sources, query),
    );
    const { attention } = status;
    const { title, look } = view;
    return showPage(
      request,
      reply,
      { title, look, current: null, attention },
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
