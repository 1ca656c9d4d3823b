import { readFileSync } from "node:fs";
import type { ConfigProblem } from "./problems.ts";
import type { Entry, Mapping, Scalar, Tree } from "./tree.ts";

/** Reads a variable, or the file that `NAME_FILE` points to; null when neither is set. An empty value counts as unset. */
export type ReadVariable = (name: string) => string | null;

/** Reads variables from an environment; a `NAME_FILE` that cannot be read becomes a problem, once. */
export function variableReader(
  env: Readonly<Record<string, string | undefined>>,
  problems: ConfigProblem[],
): ReadVariable {
  const read = new Map<string, string | null>();
  return (name) => {
    const known = read.get(name);
    if (known !== undefined) {
      return known;
    }
    const value = env[name]?.trim() || readVariableFile(env, name, problems);
    read.set(name, value);
    return value;
  };
}

function readVariableFile(
  env: Readonly<Record<string, string | undefined>>,
  name: string,
  problems: ConfigProblem[],
): string | null {
  const file = env[`${name}_FILE`];
  if (!file) {
    return null;
  }
  try {
    return readFileSync(file, "utf8").trim() || null;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : error;
    problems.push({
      file: null,
      line: null,
      path: `${name}_FILE`,
      message: `points to ${file}, which cannot be read (${String(code)}); mend the path or set ${name}`,
    });
    return null;
  }
}

const WHOLE_REFERENCE = /^os\.environ\/([A-Za-z_][A-Za-z0-9_]*)$/;
const EMBEDDED_REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/**
 * Puts values in the place of `os.environ/NAME`, `${NAME}` and `${NAME:-default}`.
 * A scalar whose variable is unset becomes null and keeps the name in `unset`.
 */
export function resolveReferences(tree: Tree, read: ReadVariable): Tree {
  switch (tree.kind) {
    case "scalar":
      return resolveScalar(tree, read);
    case "list":
      return {
        ...tree,
        items: tree.items.map((item) => resolveReferences(item, read)),
      };
    case "map":
      return resolveMapping(tree, read);
  }
}

export function resolveMapping(tree: Mapping, read: ReadVariable): Mapping {
  const entries = new Map<string, Entry>();
  for (const [key, entry] of tree.entries) {
    entries.set(key, { ...entry, node: resolveReferences(entry.node, read) });
  }
  return { ...tree, entries };
}

function resolveScalar(tree: Scalar, read: ReadVariable): Scalar {
  if (typeof tree.value !== "string") {
    return tree;
  }
  const whole = WHOLE_REFERENCE.exec(tree.value)?.[1];
  if (whole !== undefined) {
    const value = read(whole);
    return {
      ...tree,
      value,
      variables: [whole],
      unset: value === null ? whole : null,
    };
  }
  if (!tree.value.includes("${")) {
    return tree;
  }
  const variables: string[] = [];
  let unset: string | null = null;
  const value = tree.value.replace(
    EMBEDDED_REFERENCE,
    (_match, name: string, fallback: string | undefined) => {
      variables.push(name);
      const found = read(name) ?? fallback;
      if (found === undefined) {
        unset ??= name;
      }
      return found ?? "";
    },
  );
  return { ...tree, value: unset === null ? value : null, variables, unset };
}

/** The first unset variable that anything in the tree needs. */
export function firstUnset(tree: Tree): string | null {
  switch (tree.kind) {
    case "scalar":
      return tree.unset;
    case "list":
      return firstOf(tree.items);
    case "map":
      return firstOf([...tree.entries.values()].map((entry) => entry.node));
  }
}

function firstOf(trees: readonly Tree[]): string | null {
  for (const tree of trees) {
    const unset = firstUnset(tree);
    if (unset !== null) {
      return unset;
    }
  }
  return null;
}

/** The variable of a value that is `os.environ/NAME` as a whole; null for any other. */
export function referencedVariable(value: unknown): string | null {
  return typeof value === "string"
    ? (WHOLE_REFERENCE.exec(value)?.[1] ?? null)
    : null;
}

/** Whether anything in the tree refers to a variable. */
export function hasReference(tree: Tree): boolean {
  switch (tree.kind) {
    case "scalar":
      return (
        typeof tree.value === "string" &&
        (WHOLE_REFERENCE.test(tree.value) ||
          tree.value.search(EMBEDDED_REFERENCE) >= 0)
      );
    case "list":
      return tree.items.some(hasReference);
    case "map":
      return [...tree.entries.values()].some((entry) =>
        hasReference(entry.node),
      );
  }
}
