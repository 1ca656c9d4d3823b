import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { codeOf, textOf } from "../failure.ts";
import { parseYaml } from "./parse-yaml.ts";
import type { ConfigProblem } from "./problem.ts";
import type { Mapping } from "./tree.ts";

type Layer =
  | {
      readonly ok: true;
      /** The file's name as displayed: relative to `projectRoot` where it is inside. */
      readonly file: string;
      /** Empty when the file is not valid YAML. */
      readonly tree: Mapping;
      readonly problems: readonly ConfigProblem[];
    }
  | {
      readonly ok: false;
      readonly isMissing: boolean;
      readonly problem: ConfigProblem;
    };

/** Reads one configuration file. */
export function readLayer(path: string, projectRoot: string): Layer {
  const file = displayedName(path, projectRoot);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const code = codeOf(error);
    return {
      ok: false,
      isMissing: code === "ENOENT",
      problem: {
        file,
        line: null,
        path: "",
        message:
          code === "ENOENT"
            ? "file not found"
            : `cannot be read (${code ?? textOf(error)}); correct the path or its permissions`,
      },
    };
  }
  return { ok: true, file, ...parseYaml(text, file) };
}

function displayedName(path: string, projectRoot: string): string {
  const inside = relative(projectRoot, path);
  return inside.startsWith("..") ? path : inside;
}

/** The upper layer over the lower one, key by key at every depth; lists are replaced. */
export function mergeMappings(lower: Mapping, upper: Mapping): Mapping {
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
