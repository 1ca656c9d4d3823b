import { join } from "node:path";
import { isMap, isNode, isScalar, isSeq, visit } from "yaml";
import { projectRoot } from "../embedded/home.ts";
import { Failure } from "../failure.ts";
import {
  describeIssue,
  nameOf,
  type RawCheck,
  type RawSetting,
} from "./describe.ts";
import { configSchema, type SupervisorConfig } from "./schema.ts";
import {
  at,
  checkSections,
  openSource,
  place,
  plainValue,
  section,
  type Source,
} from "./source.ts";

export const shippedConfig: string = join(
  projectRoot,
  "config",
  "supervisor.yaml",
);

/** The value of an environment variable, or of the file that its NAME_FILE points to. */
export type Variables = (name: string) => string | undefined;

export type LoadedConfig = {
  readonly config: SupervisorConfig;
  /** Checks that were left out because a variable is not set, in words. */
  readonly leftOut: readonly string[];
};

/**
 * Reads the files in order: a later one adds checks, one of an equal name replaces. `${NAME}` and `${NAME:-default}` in
 * values come from `variables`. Throws a Failure with every error of all files, each with its line.
 */
export function loadConfig(
  paths: readonly string[],
  variables: Variables,
): LoadedConfig {
  const errors: string[] = [];
  const sources = paths.flatMap((path) => {
    const source = openSource(path, errors);
    return source === undefined ? [] : [source];
  });
  for (const source of sources) checkSections(source, errors);
  const leftOut: string[] = [];
  const checks = mergeChecks(sources, variables, leftOut, errors);
  const restarts = mergeRestarts(sources, variables, errors);
  const parsed = configSchema.safeParse({
    restarts: Object.fromEntries(
      [...restarts].map(([key, { value }]) => [key, value]),
    ),
    checks: checks.map(({ value }) => value),
  });
  if (!parsed.success)
    for (const issue of parsed.error.issues)
      errors.push(...describeIssue(issue, checks, restarts));
  errors.push(...crossCheck(checks));
  if (errors.length > 0 || !parsed.success)
    throw new Failure(errors.toSorted(byLine));
  return { config: parsed.data, leftOut };
}

function mergeChecks(
  sources: readonly Source[],
  variables: Variables,
  leftOut: string[],
  errors: string[],
): readonly RawCheck[] {
  const byName = new Map<unknown, RawCheck>();
  const gone = new Set<string>();
  for (const source of sources) {
    const list = section(source, "checks");
    if (list !== undefined && !isSeq(list))
      errors.push(`${at(source, list)}: checks must be a list.`);
    const items: readonly unknown[] = isSeq(list) ? list.items : [];
    for (const [index, node] of items.entries()) {
      const missing = substitute(node, variables);
      const value = plainValue(source, node);
      const name = nameOf(value) ?? Symbol("nameless");
      if (missing !== undefined) {
        byName.delete(name);
        gone.add(String(nameOf(value)));
        leftOut.push(
          `check ${String(nameOf(value))} is left out: ${missing} is not set.`,
        );
        continue;
      }
      const repeated = byName.get(name)?.source === source;
      byName.set(repeated ? Symbol("repeated") : name, {
        source,
        index,
        value,
      });
    }
  }
  return [...byName.values()].map((check) => forget(check, gone));
}

/** What one check alone cannot know: names used twice, dependencies that are not there. */
function crossCheck(checks: readonly RawCheck[]): readonly string[] {
  const names = checks.map(({ value }) => nameOf(value));
  return checks.flatMap((check, position) => {
    const name = names[position];
    const where = (key: string) =>
      `${place(check.source, ["checks", check.index, key])}: checks[${name ?? check.index}].${key}`;
    const others = names.filter((other) => other !== name);
    const twice =
      name !== undefined && names.indexOf(name) !== position
        ? [`${where("name")}: "${name}" is used twice, names are unique.`]
        : [];
    const strangers = dependenciesOf(check.value).filter(
      (dependency) => !others.includes(dependency),
    );
    return [
      ...twice,
      ...strangers.map(
        (stranger) =>
          `${where("depends_on")}: there is no other check "${stranger}"; there are ${others.join(", ")}.`,
      ),
    ];
  });
}

/** Errors in the order in which a person meets them. */
function byLine(a: string, b: string): number {
  const lineOf = (text: string) => Number(/ line (\d+)/.exec(text)?.[1] ?? 0);
  return lineOf(a) - lineOf(b);
}

/** Each key of `restarts` wins singly. */
function mergeRestarts(
  sources: readonly Source[],
  variables: Variables,
  errors: string[],
): ReadonlyMap<string, RawSetting> {
  const merged = new Map<string, RawSetting>();
  for (const source of sources) {
    const mapping = section(source, "restarts");
    if (mapping !== undefined && !isMap(mapping))
      errors.push(`${at(source, mapping)}: restarts must be a mapping.`);
    for (const pair of isMap(mapping) ? mapping.items : []) {
      if (!isScalar(pair.key)) continue;
      substitute(pair.value, variables);
      merged.set(String(pair.key.value), {
        source,
        value: plainValue(source, pair.value),
      });
    }
  }
  return merged;
}

/** Puts variables into every text below a node; returns the first one that is not set. */
function substitute(node: unknown, variables: Variables): string | undefined {
  let missing: string | undefined;
  if (!isNode(node)) return undefined;
  visit(node, {
    Scalar: (key, scalar) => {
      if (key === "key" || typeof scalar.value !== "string") return;
      scalar.value = scalar.value.replace(
        /\$\{([A-Z][A-Z0-9_]*)(?::-([^}]*))?\}/g,
        (_, name: string, otherwise: string | undefined) => {
          const value = variables(name) ?? otherwise;
          if (value === undefined) missing ??= name;
          return value ?? "";
        },
      );
    },
  });
  return missing;
}

/** A check that depends on one that was left out depends on it no more. */
function forget(check: RawCheck, gone: ReadonlySet<unknown>): RawCheck {
  const { value } = check;
  if (typeof value !== "object" || value === null) return check;
  const list: unknown = Reflect.get(value, "depends_on");
  if (!Array.isArray(list)) return check;
  const left = list.filter((name) => !gone.has(name));
  return { ...check, value: { ...value, depends_on: left } };
}

function dependenciesOf(value: unknown): readonly string[] {
  const list: unknown =
    typeof value === "object" && value !== null
      ? Reflect.get(value, "depends_on")
      : undefined;
  return Array.isArray(list)
    ? list.filter((name) => typeof name === "string")
    : [];
}
