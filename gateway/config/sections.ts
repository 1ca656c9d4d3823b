import type { z } from "zod";
import { nearestName, type ConfigProblem } from "./problems.ts";
import { locate, plain, type Mapping, type Tree } from "./tree.ts";

/** Where the reading of one configuration stands. */
export interface Reading {
  readonly root: Mapping;
  readonly problems: ConfigProblem[];
  readonly warnings: ConfigProblem[];
}

export type Path = readonly (string | number)[];

/** A problem at a path of the merged tree. */
export function problemAt(
  reading: Reading,
  path: Path,
  message: string,
): ConfigProblem {
  const { at, shown } = locate(reading.root, path);
  return { file: at.file, line: at.line, path: shown, message };
}

/** The problem of a value in a file that the environment's variable contradicts. */
export function otherThanVariable(
  reading: Reading,
  path: Path,
  variable: string,
): ConfigProblem {
  return problemAt(
    reading,
    path,
    `is another one than ${variable} gives: leave it out here (a stack that Hearth starts has its own), or unset ${variable}`,
  );
}

/**
 * Reads the mapping at `path`: each wrong field becomes a problem, each unknown one a warning, and what is right is returned.
 * null: a required field is wrong or missing.
 */
export function readSection<S extends z.ZodObject>(
  reading: Reading,
  path: Path,
  schema: S,
  options: { readonly quiet?: readonly string[] } = {},
): z.output<S> | null {
  const found =
    path.length === 0 ? reading.root : locate(reading.root, path).node;
  const node = found?.kind === "scalar" && found.value === null ? null : found;
  if (node !== null && node.kind !== "map") {
    reading.problems.push(
      problemAt(reading, path, "must be a mapping of keys to values"),
    );
    return null;
  }
  const value = node === null ? {} : (plain(node) as Record<string, unknown>);
  if (node !== null) {
    warnAboutUnknown(reading, path, node, schema);
    warnAboutUnset(reading, path, node, options.quiet ?? []);
  }
  return parseFields(reading, path, schema, value);
}

function parseFields<S extends z.ZodObject>(
  reading: Reading,
  path: Path,
  schema: S,
  value: Record<string, unknown>,
): z.output<S> | null {
  const parsed = schema.safeParse(value);
  if (parsed.success) {
    return parsed.data;
  }
  const wrong = new Set<PropertyKey>();
  for (const issue of parsed.error.issues) {
    const at = [
      ...path,
      ...issue.path.map((step) =>
        typeof step === "symbol" ? String(step) : step,
      ),
    ];
    reading.problems.push(
      problemAt(reading, at, describe(reading, at, issue.message)),
    );
    if (issue.path[0] !== undefined) {
      wrong.add(issue.path[0]);
    }
  }
  const rest = schema.safeParse(
    Object.fromEntries(
      Object.entries(value).filter(([key]) => !wrong.has(key)),
    ),
  );
  return rest.success ? rest.data : null;
}

function describe(reading: Reading, path: Path, allowed: string): string {
  const { node } = locate(reading.root, path);
  if (node === null || (node.kind === "scalar" && node.value === null)) {
    return `is missing; it ${allowed}`;
  }
  const given = shownValue(node, path);
  return given === null ? allowed : `${allowed}; ${given}`;
}

const SECRET_KEY =
  /key$|password|secret|token$|database_url|headers|authorization/i;
const SECRET_VALUE =
  /^(sk|pk|gsk|xai|hf|ghp|key)[-_]|^AIza|^eyJ|:\/\/[^/]*@|^[\w+/=-]{32,}$/i;

/** What a wrong field holds, in words; null where it could be a secret. */
function shownValue(node: Tree, path: Path): string | null {
  switch (node.kind) {
    case "map":
      return "it is a mapping";
    case "list":
      return "it is a list";
    case "scalar": {
      if (node.variables.length > 0) {
        return `the value of ${node.variables.join(" and ")} is not`;
      }
      const text = JSON.stringify(node.value);
      const hidden =
        path.some((step) => SECRET_KEY.test(String(step))) ||
        SECRET_VALUE.test(String(node.value)) ||
        text.length > 60;
      return hidden ? null : `it is ${text}`;
    }
  }
}

function warnAboutUnknown(
  reading: Reading,
  path: Path,
  node: Mapping,
  schema: z.ZodObject,
): void {
  // A loose object (`model_info`) takes free fields.
  if (schema.def.catchall !== undefined) {
    return;
  }
  const known = Object.keys(schema.shape);
  for (const key of node.entries.keys()) {
    if (!known.includes(key)) {
      reading.warnings.push(unknownKey(reading, [...path, key], key, known));
    }
  }
}

/** The warning about a key that has no meaning here. */
export function unknownKey(
  reading: Reading,
  path: Path,
  key: string,
  known: readonly string[],
): ConfigProblem {
  const near = nearestName(key, known);
  return problemAt(
    reading,
    path,
    near === null
      ? "is not a setting of Hearth and has no effect"
      : `is not a setting of Hearth and has no effect; did you mean ${near}?`,
  );
}

function warnAboutUnset(
  reading: Reading,
  path: Path,
  node: Mapping,
  quiet: readonly string[],
): void {
  for (const [key, entry] of node.entries) {
    if (
      entry.node.kind === "scalar" &&
      entry.node.unset !== null &&
      !quiet.includes(key) &&
      !quiet.includes("*")
    ) {
      reading.warnings.push(
        problemAt(
          reading,
          [...path, key],
          `${entry.node.unset} is not set; the default is used`,
        ),
      );
    }
  }
}
