import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { readLayer } from "../../core/config/layers.ts";
import type { ConfigProblem } from "../../core/config/problem.ts";
import type { Entry, Mapping, Tree } from "../../core/config/tree.ts";
import { useOneDialect } from "./one-dialect.ts";

/** A file to include: its path, and the entry that names it. */
interface Inclusion {
  readonly path: string;
  readonly named: Tree;
}

interface Included {
  readonly tree: Mapping;
  /** Displayed names of the included files, in the order in which they were merged. */
  readonly files: readonly string[];
  readonly problems: readonly ConfigProblem[];
}

/**
 * Merges the files of LiteLLM's `include` over the file at `path`, as LiteLLM 1.110 does (`config_includes.py`): lists are
 * extended, any other section is replaced, included files may include others, and each file is read once.
 */
export function mergeIncluded(
  layer: Mapping,
  path: string,
  projectRoot: string,
): Included {
  const files: string[] = [];
  const problems: ConfigProblem[] = [];
  const read = new Set([path]);
  const pending = inclusionsOf(layer, path, path, problems);
  let tree = useOneDialect(withoutInclude(layer), problems);
  for (const { path: next, named } of pending) {
    if (read.has(next)) {
      continue;
    }
    read.add(next);
    const included = readLayer(next, projectRoot);
    if (!included.ok) {
      const { file, message } = included.problem;
      problems.push(problemOf(named, `${file}: ${message}`));
      continue;
    }
    files.push(included.file);
    problems.push(...included.problems);
    // The loop also visits what is appended here.
    pending.push(...inclusionsOf(included.tree, next, path, problems));
    tree = extend(tree, useOneDialect(withoutInclude(included.tree), problems));
  }
  return { tree, files, problems };
}

/** Paths are relative to the file that names them, or else to the first one, as in earlier versions of LiteLLM. */
function inclusionsOf(
  { entries }: Mapping,
  path: string,
  first: string,
  problems: ConfigProblem[],
): Inclusion[] {
  const entry = entries.get("include");
  if (entry === undefined) {
    return [];
  }
  const items = entry.node.kind === "list" ? entry.node.items : [entry.node];
  return items.flatMap((named) => {
    if (
      entry.node.kind !== "list" ||
      named.kind !== "scalar" ||
      typeof named.value !== "string"
    ) {
      problems.push(
        problemOf(
          named,
          "must be a list of files such as [models.yaml], relative to this file",
        ),
      );
      return [];
    }
    const beside = resolve(dirname(path), named.value);
    const besideFirst = resolve(dirname(first), named.value);
    return {
      path:
        !existsSync(beside) && existsSync(besideFirst) ? besideFirst : beside,
      named,
    };
  });
}

function problemOf({ at }: Tree, message: string): ConfigProblem {
  return { ...at, path: "include", message };
}

function withoutInclude(tree: Mapping): Mapping {
  const entries = new Map(tree.entries);
  entries.delete("include");
  return { ...tree, entries };
}

function extend(base: Mapping, included: Mapping): Mapping {
  const entries = new Map<string, Entry>(base.entries);
  for (const [key, entry] of included.entries) {
    const below = entries.get(key)?.node;
    entries.set(
      key,
      below?.kind === "list" && entry.node.kind === "list"
        ? {
            ...entry,
            node: {
              ...entry.node,
              items: [
                ...withIndexes(below.items),
                ...withIndexes(entry.node.items),
              ],
            },
          }
        : entry,
    );
  }
  return { ...base, entries };
}

/** Messages count the items of each file. */
export function withIndexes(items: readonly Tree[]): readonly Tree[] {
  return items.map((item, index) => ({ index, ...item }));
}
