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
import { nearest } from "../../core/nearest.ts";
import { alternativeOf } from "./litellm-settings.ts";
import {
  generalSettings,
  modelEntry,
  modelInfo,
  providerParams,
  proxySettings,
  routerSettings,
} from "./schema.ts";

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
  const name = String(path.at(-1));
  const alternative = alternativeOf(path) ?? placeOf(reading, path, name);
  if (alternative !== undefined) {
    return {
      ...problem,
      message: `setting "${name}" has no effect: ${alternative}`,
    };
  }
  const isParameter =
    path.at(-2) === "provider_params" && nearest(name, spellings) === undefined;
  const advice = isParameter
    ? ": parameters for the provider belong in `extra_body`"
    : "";
  return {
    ...problem,
    message: `${problem.message}; it has no effect${advice}`,
  };
}

/** Of a setting in the wrong section: where it belongs. */
function placeOf(
  { root }: Reading,
  path: Path,
  name: string,
): string | undefined {
  const places: readonly (readonly [Path, z.ZodObject])[] =
    path[0] === "model_list"
      ? [
          [[...path.slice(0, 2), "provider_params"], providerParams],
          [[...path.slice(0, 2), "model_info"], modelInfo],
          ...SETTINGS,
        ]
      : SETTINGS;
  const place = places.find(([, { shape }]) => Object.hasOwn(shape, name));
  return place === undefined
    ? undefined
    : `move it to \`${locate(root, place[0]).shown}\``;
}

const SETTINGS: readonly (readonly [Path, z.ZodObject])[] = [
  [["proxy_settings"], proxySettings],
  [["router_settings"], routerSettings],
  [["general_settings"], generalSettings],
];

/**
 * Reads the mapping at `path`: each invalid field becomes a problem, each unknown one a warning; valid fields are returned.
 * null: a required field is invalid or missing.
 */
export function readSection<S extends z.ZodObject>(
  reading: Reading,
  path: Path,
  schema: S,
  options: {
    /** Settings that may refer to an unset variable without a warning. */
    readonly quiet?: readonly string[] | "all";
  } = {},
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
    if (options.quiet !== "all") {
      warnAboutUnset(reading, path, node, schema, options.quiet ?? []);
    }
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
  const known = Object.keys(schema.shape);
  for (const key of node.entries.keys()) {
    if (!takes(schema, key)) {
      reading.warnings.push(unusedSetting(reading, [...path, key], known));
    }
  }
}

/** A loose object (`model_info`) accepts any field. */
function takes({ def, shape }: z.ZodObject, key: string): boolean {
  return def.catchall !== undefined || Object.hasOwn(shape, key);
}

function warnAboutUnset(
  reading: Reading,
  path: Path,
  node: Mapping,
  schema: z.ZodObject,
  quiet: readonly string[],
): void {
  for (const [key, entry] of node.entries) {
    if (
      entry.node.kind === "scalar" &&
      entry.node.unset !== null &&
      takes(schema, key) &&
      !quiet.includes(key)
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
