import { isMap, isNode, isScalar, isSeq, visit } from "yaml";
import { nameOf, type RawItem, type RawSetting } from "./describe.ts";
import { at, plainValue, section, type Source } from "./source.ts";

/** The value of an environment variable, or of the file that its NAME_FILE points to. */
export type Variables = (name: string) => string | undefined;

type Found = {
  readonly variables: Variables;
  /** What was left out because a variable is not set, in words. */
  readonly leftOut: string[];
  readonly errors: string[];
};

/** A list of named entries: a later file adds some, one of an equal name replaces. `gone` gets the names of those left out. */
export function mergeList(
  name: string,
  what: string,
  sources: readonly Source[],
  found: Found,
  gone: Set<string> = new Set(),
): readonly RawItem[] {
  const merged = new Map<unknown, RawItem>();
  for (const source of sources) {
    const list = section(source, name);
    if (list !== undefined && !isSeq(list))
      found.errors.push(`${at(source, list)}: ${name} must be a list.`);
    const items: readonly unknown[] = isSeq(list) ? list.items : [];
    for (const [index, node] of items.entries()) {
      const written = plainValue(source, node);
      const missing = substitute(node, found.variables);
      const value = plainValue(source, node);
      const key = nameOf(value) ?? Symbol("nameless");
      if (missing !== undefined) {
        const called = String(nameOf(value) ?? kindOf(value));
        merged.delete(key);
        gone.add(called);
        found.leftOut.push(
          `${what} ${called} is left out: ${missing} is not set.`,
        );
        continue;
      }
      const repeated = merged.get(key)?.source === source;
      merged.set(repeated ? Symbol("repeated") : key, {
        source,
        index,
        written,
        value,
      });
    }
  }
  return [...merged.values()];
}

/** A mapping whose keys win singly, also those of a mapping inside it. */
export function mergeMapping(
  name: string,
  sources: readonly Source[],
  { variables, leftOut, errors }: Found,
): ReadonlyMap<string, RawSetting> {
  const merged = new Map<string, RawSetting>();
  for (const source of sources) {
    const mapping = section(source, name);
    if (mapping !== undefined && !isMap(mapping))
      errors.push(`${at(source, mapping)}: ${name} must be a mapping.`);
    for (const pair of isMap(mapping) ? mapping.items : []) {
      if (!isScalar(pair.key)) continue;
      const key = String(pair.key.value);
      const missing = substitute(pair.value, variables);
      if (missing !== undefined) {
        leftOut.push(`${name}.${key} is left out: ${missing} is not set.`);
        continue;
      }
      const value = plainValue(source, pair.value);
      // Empty, as `${NAME:-}` makes it, is not set.
      if (value === "" || value === null) continue;
      merged.set(key, { source, value: joined(merged.get(key)?.value, value) });
    }
  }
  return merged;
}

function joined(before: unknown, after: unknown): unknown {
  return isPlain(before) && isPlain(after) ? { ...before, ...after } : after;
}

function isPlain(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function kindOf(value: unknown): unknown {
  return isPlain(value) ? Reflect.get(value, "kind") : undefined;
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
