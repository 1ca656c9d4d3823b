import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type Document,
  type Node,
  type YAMLMap,
} from "yaml";
import type { ConfigProblem } from "./problems.ts";

/** A YAML value that remembers where it was written. */
export type Tree = Scalar | List | Mapping;

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
  /** Variables that the value was made from. */
  readonly variables: readonly string[];
  /** A variable that it needs and that is not set; the value is null then. */
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
  /** The key's spelling in the file, where it differs from the name we use. */
  readonly spelling: string;
  readonly node: Tree;
}

/**
 * Parses YAML into a tree with lines. Syntax errors and duplicate keys are collected, each once.
 * The parser's own texts quote the file, which holds secrets: sentences of ours are used instead.
 */
export function parseTree(
  text: string,
  file: string,
): { readonly tree: Mapping; readonly problems: readonly ConfigProblem[] } {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    logLevel: "silent",
    merge: true,
  });
  const lineAt = (offset: number): number => lines.linePos(offset).line || 1;
  const problems: ConfigProblem[] = document.errors.map((error) => ({
    file,
    line: lineAt(error.pos[0]),
    path: "",
    message: syntaxSentence(error.code, text, error.pos[0]),
  }));
  const empty: Mapping = {
    kind: "map",
    at: { file, line: 1 },
    entries: new Map(),
  };
  if (problems.length > 0 || document.contents === null) {
    return { tree: empty, problems };
  }

  const place = (node: Node): Place => ({
    file,
    line: lineAt(node.range?.[0] ?? 0),
  });
  const tree = plant(document.contents, document, place, problems, new Set());
  if (tree.kind === "map") {
    return { tree, problems };
  }
  problems.push({
    file,
    line: tree.at.line,
    path: "",
    message:
      "the file must hold sections such as model_list: and general_settings: at its top level",
  });
  return { tree: empty, problems };
}

function plant(
  node: unknown,
  document: Document,
  place: (node: Node) => Place,
  problems: ConfigProblem[],
  open: Set<unknown>,
): Tree {
  if (isAlias(node)) {
    const target = node.resolve(document);
    const at = place(node);
    if (target === undefined || open.has(target)) {
      problems.push({
        file: at.file,
        line: at.line,
        path: "",
        message:
          target === undefined
            ? "an alias (*name) here has no anchor (&name) before it; a value that begins with * needs quotes"
            : "an alias (*name) here stands inside its own anchor; write the value out",
      });
      return scalar(null, at);
    }
    return plant(target, document, place, problems, open);
  }
  open.add(node);
  try {
    if (isMap(node)) {
      return plantMap(node, document, place, problems, open);
    }
    if (isSeq(node)) {
      return {
        kind: "list",
        at: place(node),
        items: node.items.map((item) =>
          plant(item, document, place, problems, open),
        ),
      };
    }
    if (isScalar(node)) {
      return scalar(plainScalar(node.value), place(node));
    }
    throw new Error("a YAML node of an unknown kind");
  } finally {
    open.delete(node);
  }
}

function plantMap(
  node: YAMLMap,
  document: Document,
  place: (node: Node) => Place,
  problems: ConfigProblem[],
  open: Set<unknown>,
): Mapping {
  const entries = new Map<string, Entry>();
  const inherited: Tree[] = [];
  const at = place(node);
  for (const pair of node.items) {
    const key = isScalar(pair.key) ? String(pair.key.value) : String(pair.key);
    const keyAt = isScalar(pair.key) ? place(pair.key) : at;
    const value =
      pair.value === null
        ? scalar(null, keyAt)
        : plant(pair.value, document, place, problems, open);
    if (key === "<<") {
      inherited.push(value);
    } else {
      entries.set(key, { at: keyAt, spelling: key, node: value });
    }
  }
  for (const source of inherited.flatMap((tree) =>
    tree.kind === "list" ? tree.items : [tree],
  )) {
    if (source.kind === "map") {
      for (const [key, entry] of source.entries) {
        if (!entries.has(key)) {
          entries.set(key, entry);
        }
      }
    }
  }
  return { kind: "map", at, entries };
}

function plainScalar(value: unknown): Scalar["value"] {
  switch (typeof value) {
    case "string":
    case "number":
    case "boolean":
      return value;
    case "bigint":
      return Number(value);
    default:
      return null;
  }
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

function syntaxSentence(code: string, text: string, offset: number): string {
  switch (code) {
    case "DUPLICATE_KEY": {
      const key = /^[\w.-]{1,60}/.exec(text.slice(offset));
      return `${key === null ? "this key" : `the key ${key[0]}`} is given twice; keep one`;
    }
    case "TAB_AS_INDENT":
      return "a tab is used for indentation; YAML allows only spaces";
    case "BAD_INDENT":
      return "this line is indented differently from the others of its block";
    case "MISSING_CHAR":
      return "a closing quote, bracket, brace or a colon is missing here";
    case "BLOCK_AS_IMPLICIT_KEY":
    case "MULTILINE_IMPLICIT_KEY":
      return "a value and a nested block stand on one line here; put the value in quotes or the block on its own lines";
    case "MULTIPLE_DOCS":
      return "the file holds several YAML documents (---); keep one";
    default:
      return "this is not valid YAML; check indentation, quotes and colons on this line and the one before";
  }
}

/** The node at a path of names and indexes, or the nearest one above it, with the path in the file's own spelling. */
export function locate(
  root: Tree,
  path: readonly (string | number)[],
): { readonly at: Place; readonly shown: string; readonly node: Tree | null } {
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
    } else {
      node = null;
    }
    shown +=
      typeof step === "number"
        ? `[${step}]`
        : shown === ""
          ? spelling
          : `.${spelling}`;
  }
  return { at, shown, node };
}

/** The bare value; keys without a value (or whose variable is unset) are left out. */
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
