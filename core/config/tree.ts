/** A YAML value with the place at which it was written. */
export type Tree = (Scalar | List | Mapping) & {
  /** The index in its list as written, where that list was merged with another. */
  readonly index?: number;
};

export interface Place {
  readonly file: string;
  readonly line: number;
}

export interface Scalar {
  readonly kind: "scalar";
  readonly at: Place;
  readonly value: string | number | boolean | null;
  /** The value before references were resolved. */
  readonly written: string | number | boolean | null;
  /** Variables from which the value was composed. */
  readonly variables: readonly string[];
  /** A referenced variable that is not set; the value is null then. */
  readonly unset: string | null;
}

export interface List {
  readonly kind: "list";
  readonly at: Place;
  readonly items: readonly Tree[];
}

export interface Mapping {
  readonly kind: "map";
  readonly at: Place;
  readonly entries: ReadonlyMap<string, Entry>;
}

export interface Entry {
  readonly at: Place;
  /** The key as written in the file, which may use another dialect's name. */
  readonly spelling: string;
  readonly node: Tree;
}

export function scalar(value: Scalar["value"], at: Place): Scalar {
  return {
    kind: "scalar",
    at,
    value,
    written: value,
    variables: [],
    unset: null,
  };
}

export function emptyMapping(file: string): Mapping {
  return { kind: "map", at: { file, line: 1 }, entries: new Map() };
}

interface Located {
  readonly at: Place;
  /** The path in the file's own spelling: `checks[gateway].every`, `model_list[2]`. */
  readonly shown: string;
  /** null: nothing at this path. */
  readonly node: Tree | null;
}

/** The node at a path of names and indexes; the place is that of the deepest part that exists. */
export function locate(
  root: Tree,
  path: readonly (string | number)[],
): Located {
  let node: Tree | null = root;
  let at = root.at;
  let shown = "";
  for (const step of path) {
    let spelling = String(step);
    if (node?.kind === "map") {
      const entry = node.entries.get(String(step));
      spelling = entry?.spelling ?? spelling;
      at = entry?.at ?? at;
      node = entry?.node ?? null;
    } else if (node?.kind === "list") {
      node = node.items[Number(step)] ?? null;
      at = node?.at ?? at;
      spelling = node === null ? spelling : spellingOf(node, spelling);
    } else {
      node = null;
    }
    shown +=
      typeof step === "number"
        ? `[${spelling}]`
        : shown === ""
          ? spelling
          : `.${spelling}`;
  }
  return { at, shown, node };
}

/** How messages name an item of a list: by its name, or by its index. */
function spellingOf(item: Tree, index: string): string {
  return textOf(item, "name") ?? String(item.index ?? index);
}

/** The text under a key of a mapping; undefined for anything else. */
export function textOf(tree: Tree, key: string): string | undefined {
  const node = tree.kind === "map" ? tree.entries.get(key)?.node : undefined;
  return node?.kind === "scalar" && typeof node.value === "string"
    ? node.value
    : undefined;
}

/** The texts of a list under a key of a mapping; none when it is anything else. */
export function textsOf(tree: Tree, key: string): readonly string[] {
  const node = tree.kind === "map" ? tree.entries.get(key)?.node : undefined;
  return node?.kind === "list"
    ? node.items.flatMap((item) =>
        item.kind === "scalar" && typeof item.value === "string"
          ? [item.value]
          : [],
      )
    : [];
}

export function isEmpty(tree: Tree | undefined): boolean {
  return tree === undefined || (tree.kind === "scalar" && tree.value === null);
}

/** The bare value; keys without a value (or with an unset variable) are omitted. */
export function plain(tree: Tree): unknown {
  switch (tree.kind) {
    case "scalar":
      return tree.value;
    case "list":
      return tree.items.map(plain);
    case "map":
      return Object.fromEntries(
        [...tree.entries]
          .map(([key, entry]) => [key, plain(entry.node)] as const)
          .filter(([, value]) => value !== null),
      );
  }
}

/** The mapping under a key; null when absent, empty or not a mapping. */
export function child(tree: Mapping, key: string): Mapping | null {
  const node = tree.entries.get(key)?.node;
  return node?.kind === "map" ? node : null;
}
