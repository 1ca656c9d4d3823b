import type { ConfigProblem } from "../../core/config/problem.ts";
import { SPELLINGS } from "../../core/config/reading.ts";
import type { Entry, Mapping } from "../../core/config/tree.ts";

const NAMES: ReadonlyMap<string, string> = new Map(
  Object.entries(SPELLINGS).flatMap(([name, spellings]) =>
    spellings.map((spelling) => [spelling, name] as const),
  ),
);

/** Renames LiteLLM's sections to Hearth's names; messages keep the written spelling. */
export function useOneDialect(
  layer: Mapping,
  problems: ConfigProblem[],
): Mapping {
  const renamed = rename(layer, problems);
  const models = renamed.entries.get("model_list");
  if (models?.node.kind !== "list") {
    return renamed;
  }
  const items = models.node.items.map((item) =>
    item.kind === "map" ? rename(item, problems) : item,
  );
  return {
    ...renamed,
    entries: new Map(renamed.entries).set("model_list", {
      ...models,
      node: { ...models.node, items },
    }),
  };
}

function rename(tree: Mapping, problems: ConfigProblem[]): Mapping {
  const entries = new Map<string, Entry>();
  for (const [key, entry] of tree.entries) {
    const name = NAMES.get(key) ?? key;
    const earlier = entries.get(name);
    if (earlier !== undefined) {
      problems.push({
        file: entry.at.file,
        line: entry.at.line,
        path: entry.spelling,
        message: `duplicates ${earlier.spelling} above; keep one of the two`,
      });
    } else {
      entries.set(name, entry);
    }
  }
  return { ...tree, entries };
}
