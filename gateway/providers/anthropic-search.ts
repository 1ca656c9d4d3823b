import {
  isRecord,
  present,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { searchesOf } from "../tokens/searches.ts";
import type { Lack } from "./anthropic-content.ts";

/**
 * `web_search_options` of a chat as Anthropic's tool; without them, none.
 * https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool
 */
export function searchTools(
  options: unknown,
  lack: Lack,
): readonly JsonRecord[] {
  if (options === undefined) {
    return [];
  }
  if (!isRecord(options)) {
    lack("web_search_options");
    return [];
  }
  const { approximate } = recordOf(options["user_location"]);
  return [
    present({
      type: "web_search_20250305",
      name: "web_search",
      max_uses: searchesOf(options),
      user_location: isRecord(approximate)
        ? present({ type: "approximate", ...approximate })
        : null,
    }),
  ];
}

/** Pages that a block of text quotes, as OpenAI's annotations of a content in which it begins at `start`. */
export function urlCitations(
  { text, citations }: JsonRecord,
  start: number,
): readonly JsonRecord[] {
  return recordsOf(citations)
    .filter(({ type }) => type === "web_search_result_location")
    .map(({ url, title }) => ({
      type: "url_citation",
      url_citation: {
        start_index: start,
        end_index: start + textOf(text).length,
        title: textOf(title),
        url,
      },
    }));
}
