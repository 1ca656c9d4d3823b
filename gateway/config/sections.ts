import type { z } from "zod";
import type { ConfigProblem } from "../../core/config/problem.ts";
import {
  issueProblem,
  problemAt,
  SPELLINGS,
  unknownSetting,
  type Path,
  type Reading,
} from "../../core/config/reading.ts";
import type { ReadVariable } from "../../core/config/references.ts";
import {
  isEmpty,
  locate,
  plain,
  type Mapping,
} from "../../core/config/tree.ts";
import { alternativeOf } from "./litellm-settings.ts";
import { modelEntry } from "./schema.ts";

/** The problem of a value in a file that differs from the environment's variable. */
export function contradictsVariable(
  reading: Reading,
  path: Path,
  variable: string,
): ConfigProblem {
  return problemAt(
    reading,
    path,
    `differs from ${variable}: remove it here (a stack started by Hearth has its own), or unset ${variable}`,
  );
}

/** The warning about a key that is not a setting, or is one of LiteLLM's without an effect here. */
export function unusedSetting(
  reading: Reading,
  path: Path,
  known: readonly string[],
): ConfigProblem {
  const spellings = known.flatMap((name) => [name, ...(SPELLINGS[name] ?? [])]);
  const problem = unknownSetting(reading, path, spellings);
  const alternative = alternativeOf(path);
  const message =
    alternative === undefined
      ? `${problem.message}; it has no effect`
      : `setting "${String(path.at(-1))}" has no effect: ${alternative}`;
  return { ...problem, message };
}

/**
 * Reads the mapping at `path`: each invalid field becomes a problem, each unknown one a warning; valid fields are returned.
 * null: a required field is invalid or missing.
 */
export function readSection<S extends z.ZodObject>(
  reading: Reading,
  path: Path,
  schema: S,
  options: { readonly quiet?: readonly string[] } = {},
): z.output<S> | null {
  const found =
    path.length === 0 ? reading.root : locate(reading.root, path).node;
  const node = found === null || isEmpty(found) ? null : found;
  if (node !== null && node.kind !== "map") {
    reading.problems.push(
      problemAt(reading, path, "must be a mapping of settings to values"),
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
  const invalid = new Set<PropertyKey>();
  const known = [
    ...Object.keys(schema.shape),
    ...Object.keys(modelEntry.shape),
  ];
  for (const issue of parsed.error.issues) {
    reading.problems.push(issueProblem(reading, path, issue, known));
    if (issue.path[0] !== undefined) {
      invalid.add(issue.path[0]);
    }
  }
  const rest = schema.safeParse(
    Object.fromEntries(
      Object.entries(value).filter(([key]) => !invalid.has(key)),
    ),
  );
  return rest.success ? rest.data : null;
}

function warnAboutUnknown(
  reading: Reading,
  path: Path,
  node: Mapping,
  schema: z.ZodObject,
): void {
  // A loose object (`model_info`) accepts any field.
  if (schema.def.catchall !== undefined) {
    return;
  }
  const known = Object.keys(schema.shape);
  for (const key of node.entries.keys()) {
    if (!known.includes(key)) {
      reading.warnings.push(unusedSetting(reading, [...path, key], known));
    }
  }
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

/** The value of the file, else of the variable. They must not differ: a variable that is set must take effect. */
export function fileOrVariable(
  reading: Reading,
  path: readonly string[],
  written: string | undefined,
  read: ReadVariable,
  variable: string,
): string | null {
  const given = read(variable);
  if (written !== undefined && given !== null && written !== given) {
    reading.problems.push(contradictsVariable(reading, path, variable));
  }
  return written ?? given;
}
