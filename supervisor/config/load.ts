import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import {
  isMap,
  isNode,
  isScalar,
  LineCounter,
  parseDocument,
  visit,
  type Document,
} from "yaml";
import { Failure, codeOf, sentencesOf } from "../failure.ts";
import { projectRoot } from "../embedded/home.ts";
import { nearest } from "./nearest.ts";
import { configSchema, type SupervisorConfig } from "./schema.ts";

export const shippedConfig: string = join(
  projectRoot,
  "config",
  "supervisor.yaml",
);

/** The value of an environment variable, or of the file that its NAME_FILE points to. */
export type Variables = (name: string) => string | undefined;

type Source = {
  readonly path: string;
  readonly document: Document;
  readonly lines: LineCounter;
};
type RawCheck = {
  readonly source: Source;
  readonly index: number;
  readonly value: unknown;
};

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
    const source = open(path, errors);
    return source === undefined ? [] : [source];
  });
  const leftOut: string[] = [];
  const byName = new Map<unknown, RawCheck>();
  for (const source of sources)
    for (const [index, node] of checkNodes(source, errors).entries()) {
      const missing = substitute(node, variables);
      const value = isNode(node)
        ? (node.toJS(source.document) as unknown)
        : node;
      const name = nameOf(value) ?? Symbol("nameless");
      if (missing !== undefined) {
        byName.delete(name);
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
  const raw = [...byName.values()];
  const parsed = configSchema.safeParse({
    checks: raw.map((check) => withoutLeftOut(check.value, leftOut)),
  });
  if (!parsed.success)
    for (const issue of parsed.error.issues)
      errors.push(...describe(issue, raw));
  if (errors.length > 0 || !parsed.success) throw new Failure(errors);
  return { config: parsed.data, leftOut };
}

function open(path: string, errors: string[]): Source | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    errors.push(
      codeOf(error) === "ENOENT"
        ? `${path} does not exist.`
        : (sentencesOf(error, path)[0] ?? path),
    );
    return undefined;
  }
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
  });
  for (const error of document.errors)
    errors.push(
      `${basename(path)} line ${lines.linePos(error.pos[0]).line}: ${error.message.replace(/\.?$/, ".")}`,
    );
  return document.errors.length > 0 ? undefined : { path, document, lines };
}

function checkNodes(source: Source, errors: string[]): readonly unknown[] {
  const { contents } = source.document;
  if (contents === null || (isScalar(contents) && contents.value === null))
    return [];
  if (!isMap(contents)) {
    errors.push(
      `${basename(source.path)} line 1: must hold a mapping such as "checks:".`,
    );
    return [];
  }
  let items: readonly unknown[] = [];
  for (const pair of contents.items) {
    const key = isScalar(pair.key) ? String(pair.key.value) : "";
    const line = lineOf(source, pair.key);
    if (key !== "checks") {
      errors.push(
        `${basename(source.path)} line ${line}: there is no setting "${key}"; there is checks.`,
      );
    } else if (
      isNode(pair.value) &&
      "items" in pair.value &&
      !isMap(pair.value)
    ) {
      items = pair.value.items;
    } else if (!(isScalar(pair.value) && pair.value.value === null)) {
      errors.push(
        `${basename(source.path)} line ${line}: checks must be a list.`,
      );
    }
  }
  return items;
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
function withoutLeftOut(value: unknown, leftOut: readonly string[]): unknown {
  if (typeof value !== "object" || value === null) return value;
  const dependencies: unknown = Reflect.get(value, "depends_on");
  if (!Array.isArray(dependencies)) return value;
  return {
    ...value,
    depends_on: dependencies.filter(
      (name) => !leftOut.some((text) => text.startsWith(`check ${name} `)),
    ),
  };
}

function nameOf(value: unknown): string | undefined {
  const name: unknown =
    typeof value === "object" && value !== null
      ? Reflect.get(value, "name")
      : undefined;
  return typeof name === "string" ? name : undefined;
}

type Issue = {
  readonly code?: string;
  readonly message: string;
  readonly path: readonly PropertyKey[];
  readonly keys?: readonly string[];
};

function describe(issue: Issue, raw: readonly RawCheck[]): readonly string[] {
  const [, at, ...rest] = issue.path;
  const check = typeof at === "number" ? raw[at] : undefined;
  if (check === undefined) return [issue.message];
  const { source, index } = check;
  const where = (more: readonly PropertyKey[]) =>
    `${basename(source.path)} line ${lineAt(source, ["checks", index, ...more])}: checks[${nameOf(check.value) ?? index}]${more.length > 0 ? `.${more.join(".")}` : ""}`;
  if (issue.code === "unrecognized_keys")
    return (issue.keys ?? []).map((key) => {
      const near = nearest(key, knownKeys);
      return `${where([...rest, key])} is no setting${near === undefined ? "" : `, did you mean ${near}?`}`;
    });
  if (issue.code === "invalid_union" && rest[0] === "kind")
    return [`${where(rest)} must be http, tcp or postgres.`];
  return [`${where(rest)}: ${issue.message}.`];
}

const knownKeys = [
  "name",
  "kind",
  "url",
  "host",
  "port",
  "expect",
  "status",
  "within",
  "json",
  "every",
  "timeout",
  "fail_after",
  "recover_after",
  "depends_on",
  "heal",
  "restart",
  "max",
  "per",
  "cooldown",
  "grace",
  "connections_below_percent",
];

/** The line of the deepest part of a path that is there. */
function lineAt(source: Source, path: readonly PropertyKey[]): number {
  for (let depth = path.length; depth > 0; depth -= 1) {
    const keys = path.slice(0, depth);
    const parent: unknown = source.document.getIn(keys.slice(0, -1), true);
    if (isMap(parent)) {
      const pair = parent.items.find(
        ({ key }) => isScalar(key) && key.value === keys.at(-1),
      );
      if (pair !== undefined) return lineOf(source, pair.key);
    }
    const node: unknown = source.document.getIn(keys, true);
    if (isNode(node)) return lineOf(source, node);
  }
  return 1;
}

function lineOf(source: Source, node: unknown): number {
  return isNode(node) && node.range != null
    ? source.lines.linePos(node.range[0]).line
    : 1;
}
