import { join, resolve } from "node:path";
import { mergeMappings, readLayer } from "../../core/config/layers.ts";
import type { ConfigProblem } from "../../core/config/problem.ts";
import {
  emptyMapping,
  plain,
  type Mapping,
  type Tree,
} from "../../core/config/tree.ts";
import { mergeIncluded, withIndexes } from "./includes.ts";

/** The configuration files merged into one tree, references not yet resolved. */
interface Layers {
  readonly tree: Mapping;
  /** Shown names of the files that were read, lowest layer first. */
  readonly files: readonly string[];
  readonly problems: readonly ConfigProblem[];
  readonly warnings: readonly ConfigProblem[];
}

/**
 * Reads `file` alone, or the shipped file with the operator's own over it.
 * `extra` (written by `hearth up`) is layered between the two, or over `file`.
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
    const layer = readLayer(absolute, projectRoot);
    if (layer.ok) {
      files.push(layer.file);
      const upper = mergeIncluded(layer.tree, absolute, projectRoot);
      files.push(...upper.files);
      problems.push(...layer.problems, ...upper.problems);
      tree = tree === null ? upper.tree : mergeLayers(tree, upper.tree);
    } else if (!layer.isMissing || whenMissing === "problem") {
      problems.push(layer.problem);
    } else if (whenMissing === "warning") {
      warnings.push(layer.problem);
    }
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
    tree: tree ?? emptyMapping(files[0] ?? ""),
    files,
    problems,
    warnings,
  };
}

/** Models are added, replacing all of the same `model_name`; other sections are merged key by key. */
function mergeLayers(lower: Mapping, upper: Mapping): Mapping {
  const merged = mergeMappings(lower, upper);
  const below = lower.entries.get("model_list");
  const above = upper.entries.get("model_list");
  if (below?.node.kind !== "list" || above?.node.kind !== "list") {
    return merged;
  }
  const replaced = new Set(above.node.items.map(modelName));
  const items = [
    ...withIndexes(below.node.items).filter(
      (item) => !replaced.has(modelName(item)),
    ),
    ...withIndexes(above.node.items),
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
