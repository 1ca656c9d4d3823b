import { readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import type { ConfigProblem } from "./problems.ts";
import {
  parseTree,
  plain,
  type Entry,
  type Mapping,
  type Tree,
} from "./tree.ts";

/** The configuration files merged into one tree, references not yet resolved. */
export interface Layers {
  readonly tree: Mapping;
  /** Shown names of the files that were read, lowest layer first. */
  readonly files: readonly string[];
  readonly problems: readonly ConfigProblem[];
  readonly warnings: readonly ConfigProblem[];
}

/**
 * Reads `file` alone, or the shipped file with the operator's own over it.
 * `extra` (written by `hearth up`) lies between the two, or over `file`.
 */
export function readLayers(options: {
  readonly file: string | null;
  readonly extra: string | null;
  /** The operator's own file; null: `config/gateway.local.yaml`. */
  readonly local: string | null;
  readonly projectRoot: string;
}): Layers {
  const { file, extra, local, projectRoot } = options;
  const problems: ConfigProblem[] = [];
  const warnings: ConfigProblem[] = [];
  const files: string[] = [];
  let tree: Mapping | null = null;

  const add = (path: string, whenMissing: "problem" | "warning" | "fine") => {
    const absolute = resolve(projectRoot, path);
    const shown = shownName(absolute, projectRoot);
    const text = readText(absolute);
    if (typeof text !== "string") {
      if (text.code === "ENOENT" && whenMissing === "fine") {
        return;
      }
      const list =
        text.code === "ENOENT" && whenMissing === "warning"
          ? warnings
          : problems;
      list.push({
        file: shown,
        line: null,
        path: "",
        message: `cannot be read (${text.code}); mend its path or its permissions`,
      });
      return;
    }
    files.push(shown);
    const parsed = parseTree(text, shown);
    problems.push(...parsed.problems);
    const layer = useOneDialect(parsed.tree, problems);
    tree = tree === null ? layer : mergeLayers(tree, layer);
  };

  if (file !== null) {
    add(resolve(file), "problem");
    if (extra !== null) {
      add(resolve(extra), "warning");
    }
  } else {
    add(join("config", "gateway.yaml"), "problem");
    if (extra !== null) {
      add(resolve(extra), "warning");
    }
    add(local ?? join("config", "gateway.local.yaml"), "fine");
  }
  return {
    tree: tree ?? {
      kind: "map",
      at: { file: files[0] ?? "", line: 1 },
      entries: new Map(),
    },
    files,
    problems,
    warnings,
  };
}

function readText(path: string): string | { readonly code: string } {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    return {
      code:
        error instanceof Error && "code" in error
          ? String(error.code)
          : String(error),
    };
  }
}

function shownName(absolute: string, projectRoot: string): string {
  const inside = relative(projectRoot, absolute);
  return inside.startsWith("..") ? absolute : inside;
}

const SECTION_SPELLINGS: ReadonlyMap<string, string> = new Map([
  ["litellm_settings", "proxy_settings"],
]);
const ENTRY_SPELLINGS: ReadonlyMap<string, string> = new Map([
  ["litellm_params", "provider_params"],
]);

/** Renames LiteLLM's section names to ours; the written spelling stays for messages. */
function useOneDialect(layer: Mapping, problems: ConfigProblem[]): Mapping {
  const renamed = rename(layer, SECTION_SPELLINGS, problems);
  const models = renamed.entries.get("model_list");
  if (models?.node.kind !== "list") {
    return renamed;
  }
  const items = models.node.items.map((item) =>
    item.kind === "map" ? rename(item, ENTRY_SPELLINGS, problems) : item,
  );
  return {
    ...renamed,
    entries: new Map(renamed.entries).set("model_list", {
      ...models,
      node: { ...models.node, items },
    }),
  };
}

function rename(
  tree: Mapping,
  spellings: ReadonlyMap<string, string>,
  problems: ConfigProblem[],
): Mapping {
  const entries = new Map<string, Entry>();
  for (const [key, entry] of tree.entries) {
    const name = spellings.get(key) ?? key;
    const earlier = entries.get(name);
    if (earlier !== undefined) {
      problems.push({
        file: entry.at.file,
        line: entry.at.line,
        path: entry.spelling,
        message: `is the same as ${earlier.spelling}, which is given above; keep one of the two`,
      });
    } else {
      entries.set(name, entry);
    }
  }
  return { ...tree, entries };
}

/** Models are added, one of an equal `model_name` replaces all of that name; every other key wins singly. */
function mergeLayers(lower: Mapping, upper: Mapping): Mapping {
  const merged = mergeMappings(lower, upper);
  const below = lower.entries.get("model_list");
  const above = upper.entries.get("model_list");
  if (below?.node.kind !== "list" || above?.node.kind !== "list") {
    return merged;
  }
  const replaced = new Set(above.node.items.map(modelName));
  const items = [
    ...below.node.items.filter((item) => !replaced.has(modelName(item))),
    ...above.node.items,
  ];
  return {
    ...merged,
    entries: new Map(merged.entries).set("model_list", {
      ...above,
      node: { ...above.node, items },
    }),
  };
}

function modelName(item: Tree): unknown {
  const entry =
    item.kind === "map" ? item.entries.get("model_name") : undefined;
  return entry === undefined ? item : plain(entry.node);
}

function mergeMappings(lower: Mapping, upper: Mapping): Mapping {
  const entries = new Map(lower.entries);
  for (const [key, entry] of upper.entries) {
    const below = entries.get(key);
    entries.set(
      key,
      below?.node.kind === "map" && entry.node.kind === "map"
        ? { ...entry, node: mergeMappings(below.node, entry.node) }
        : entry,
    );
  }
  return { ...upper, entries };
}
