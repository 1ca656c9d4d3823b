import {
  FileVariableError,
  readVariable,
  type Environment,
} from "../environment.ts";
import type { ConfigProblem } from "./problem.ts";
import type { Entry, Mapping, Scalar, Tree } from "./tree.ts";

/** Reads a variable, or the file that `NAME_FILE` points to; null when neither is set. An empty value counts as unset. */
export type ReadVariable = (name: string) => string | null;

/** Reads variables from an environment; a `NAME_FILE` that cannot be read becomes a problem, once. */
export function variableReader(
  env: Environment,
  problems: ConfigProblem[],
): ReadVariable {
  const known = new Map<string, string | null>();
  const read = (name: string): string | null => {
    try {
      return readVariable(name, env)?.trim() || null;
    } catch (error) {
      if (!(error instanceof FileVariableError)) {
        throw error;
      }
      const { variable: path, advice: message } = error;
      problems.push({ file: null, line: null, path, message });
      return null;
    }
  };
  return (name) => {
    const value = known.has(name) ? known.get(name) : read(name);
    known.set(name, value ?? null);
    return value ?? null;
  };
}

/** `${NAME}` and `${NAME:-default}` within a text. */
const EMBEDDED_REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;
/** `os.environ/NAME` as the whole text, LiteLLM's form. */
const WHOLE_REFERENCE = /^os\.environ\/([A-Za-z_][A-Za-z0-9_]*)$/;

/**
 * Replaces `${NAME}`, `${NAME:-default}` and `os.environ/NAME` by values.
 * A scalar whose variable is unset becomes null and keeps the name in `unset`.
 */
function resolveReferences(tree: Tree, read: ReadVariable): Tree {
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
