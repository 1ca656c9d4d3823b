import { join } from "node:path";
import { isMap, isNode, isScalar, isSeq, visit } from "yaml";
import { checkSchema } from "../checks/config.ts";
import { projectRoot } from "../home/home.ts";
import { Failure } from "../../core/failure.ts";
import { crossCheck } from "./cross-check.ts";
import { describeIssue } from "./describe.ts";
import { nameOf, type RawEntry } from "./raw-entry.ts";
import { configSchema, type SupervisorConfig } from "./schema.ts";
import {
  at,
  checkSections,
  openSource,
  plainValue,
  section,
  sections,
  type Source,
} from "./source.ts";

export const shippedConfig: string = join(
  projectRoot,
  "config",
  "supervisor.yaml",
);

/** The value of an environment variable, or of the file that its NAME_FILE points to. */
export type Variables = (name: string) => string | undefined;

export interface LoadedConfig {
  readonly config: SupervisorConfig;
  /** What was left out because a variable is not set, in words. */
  readonly leftOut: readonly string[];
}

/**
 * Reads the files in order: a later one adds to lists, an entry of an equal name replaces. `${NAME}` and `${NAME:-default}` in
 * values come from `variables`. Where no file has `checks:`, those of the shipped one are used. Throws a Failure with every
 * error of all files, each with its line.
 */
export function loadConfig(
  paths: readonly string[],
  variables: Variables,
): LoadedConfig {
  const errors: string[] = [];
  const leftOut: string[] = [];
  const sources = paths.flatMap((path) => {
    const source = openSource(path, errors);
    return source === undefined ? [] : [source];
  });
  for (const source of sources) {
    checkSections(source, errors);
  }
  const usualChecks = sources.some((source) => section(source, "checks"))
    ? undefined
    : openSource(shippedConfig, errors);
  const withChecks = usualChecks === undefined ? sources : [usualChecks];
  const entries = Object.entries(sections).flatMap(([name, shape]) =>
    shape === "list"
      ? mergeList(
          name,
          name === "checks" ? withChecks : sources,
          variables,
          leftOut,
          errors,
        )
      : mergeMapping(name, sources, variables, leftOut, errors),
  );
  const parsed = configSchema.safeParse(plainConfig(entries));
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      errors.push(...describeIssue(issue, entries));
    }
  }
  errors.push(...crossCheck(entries, withChecks.flatMap(checkNames)));
  if (errors.length > 0 || !parsed.success) {
    throw new Failure(errors.toSorted(byLine));
  }
  return {
    config: withPeer(parsed.data, variables("HEARTH_PEER_URL")),
    leftOut,
  };
}

/** As written, whether or not the variables of a check are set here. */
function checkNames(source: Source): readonly string[] {
  const list = section(source, "checks");
  return isSeq(list)
    ? list.items.flatMap((item) => nameOf(plainValue(source, item)) ?? [])
    : [];
}

/** The other host's supervisor is looked at as any other service, unless a check named `peer` says how. */
function withPeer(
  config: SupervisorConfig,
  deployed: string | undefined,
): SupervisorConfig {
  const url = config.peer.url ?? deployed;
  if (url === undefined || config.checks.some(({ name }) => name === "peer")) {
    return config;
  }
  const peer = checkSchema.parse({
    name: "peer",
    kind: "http",
    url: `${url.replace(/\/+$/, "")}/healthz`,
    // At five seconds each, two minutes: a deployment replaces it in less.
    fail_after: 24,
  });
  return { ...config, checks: [...config.checks, peer] };
}

function plainConfig(entries: readonly RawEntry[]): Record<string, unknown> {
  const plain: Record<string, unknown> = {};
  for (const [name, shape] of Object.entries(sections)) {
    const own = entries.filter((entry) => entry.section === name);
    if (own.length === 0) {
      continue;
    }
    plain[name] =
      shape === "list"
        ? own.map(({ value }) => value)
        : Object.fromEntries(own.map(({ key, value }) => [key, value]));
  }
  return plain;
}

function mergeList(
  name: string,
  sources: readonly Source[],
  variables: Variables,
  leftOut: string[],
  errors: string[],
): readonly RawEntry[] {
  const byName = new Map<unknown, RawEntry>();
  const gone = new Set<string>();
  for (const source of sources) {
    const list = section(source, name);
    if (list !== undefined && !isSeq(list)) {
      errors.push(`${at(source, list)}: ${name} must be a list.`);
    }
    const items: readonly unknown[] = isSeq(list) ? list.items : [];
    for (const [index, node] of items.entries()) {
      const written = plainValue(source, node);
      const missing = substitute(node, variables);
      const value = plainValue(source, node);
      const own = nameOf(value);
      const key = own ?? Symbol("nameless");
      if (missing !== undefined) {
        byName.delete(key);
        if (own !== undefined) {
          gone.add(own);
        }
        leftOut.push(
          `${singular(name)} ${own ?? index + 1} is left out: ${missing} is not set.`,
        );
        continue;
      }
      if (isNotWanted(value)) {
        byName.delete(key);
        if (own !== undefined) {
          gone.add(own);
        }
        continue;
      }
      const repeated = byName.get(key)?.source === source;
      byName.set(repeated ? Symbol("repeated") : key, {
        section: name,
        source,
        key: index,
        written,
        value,
      });
    }
  }
  const kept = [...byName.values()];
  const names = new Set(kept.map(({ value }) => nameOf(value)));
  const lost = new Set([...gone].filter((each) => !names.has(each)));
  return kept.map((entry) => forget(entry, lost));
}

function mergeMapping(
  name: string,
  sources: readonly Source[],
  variables: Variables,
  leftOut: string[],
  errors: string[],
): readonly RawEntry[] {
  const merged = new Map<string, RawEntry>();
  for (const source of sources) {
    const mapping = section(source, name);
    if (mapping !== undefined && !isMap(mapping)) {
      errors.push(`${at(source, mapping)}: ${name} must be a mapping.`);
    }
    for (const pair of isMap(mapping) ? mapping.items : []) {
      if (!isScalar(pair.key)) {
        continue;
      }
      const key = String(pair.key.value);
      const written = plainValue(source, pair.value);
      const missing = substitute(pair.value, variables);
      if (missing !== undefined) {
        merged.delete(key);
        leftOut.push(`${name}.${key} is left out: ${missing} is not set.`);
        continue;
      }
      const value = plainValue(source, pair.value);
      // Empty, as `${NAME:-}` makes it, is not set.
      if (value !== "") {
        merged.set(key, { section: name, source, key, written, value });
      }
    }
  }
  return [...merged.values()];
}

/** `only_if: ${NAME:-}` leaves an entry out in silence where that variable is not set. */
function isNotWanted(value: unknown): boolean {
  return (
    typeof value === "object" &&
    value !== null &&
    Reflect.get(value, "only_if") === ""
  );
}

/** "check" for the section "checks"; "notify" and "maintenance" stay. */
function singular(name: string): string {
  return name.replace(/s$/, "");
}

/** Errors in the order in which a person meets them. */
function byLine(a: string, b: string): number {
  const lineOf = (text: string) => Number(/ line (\d+)/.exec(text)?.[1] ?? 0);
  return lineOf(a) - lineOf(b);
}

/** Puts variables into every text below a node; returns the first one that is not set. */
function substitute(node: unknown, variables: Variables): string | undefined {
  let missing: string | undefined;
  if (!isNode(node)) {
    return undefined;
  }
  visit(node, {
    Scalar: (key, scalar) => {
      if (key === "key" || typeof scalar.value !== "string") {
        return;
      }
      scalar.value = scalar.value.replace(
        /\$\{([A-Z][A-Z0-9_]*)(?::-([^}]*))?\}/g,
        (_, name: string, otherwise: string | undefined) => {
          const value = variables(name) ?? otherwise;
          if (value === undefined) {
            missing ??= name;
          }
          return value ?? "";
        },
      );
    },
  });
  return missing;
}

/** A check that depends on one that was left out depends on it no more. */
function forget(entry: RawEntry, gone: ReadonlySet<unknown>): RawEntry {
  const { value } = entry;
  if (typeof value !== "object" || value === null) {
    return entry;
  }
  const list: unknown = Reflect.get(value, "depends_on");
  if (!Array.isArray(list)) {
    return entry;
  }
  const left = list.filter((name) => !gone.has(name));
  return { ...entry, value: { ...value, depends_on: left } };
}
