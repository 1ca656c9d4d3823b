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
  type YAMLParseError,
} from "yaml";
import type { ConfigProblem } from "./problem.ts";
import {
  emptyMapping,
  isEmpty,
  scalar,
  type Entry,
  type Mapping,
  type Place,
  type Scalar,
  type Tree,
} from "./tree.ts";

/**
 * Parses YAML into a tree with lines. Syntax errors and duplicate keys are collected.
 * The parser's own messages quote the file, which may contain secrets, so they are replaced.
 */
export function parseYaml(
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
    message: syntaxMessage(error, text),
  }));
  const empty = emptyMapping(file);
  if (problems.length > 0 || document.contents === null) {
    return { tree: empty, problems };
  }

  const place = (node: Node): Place => ({
    file,
    line: lineAt(node.range?.[0] ?? 0),
  });
  const tree = growTree(
    document.contents,
    document,
    place,
    problems,
    new Set(),
  );
  if (tree.kind === "map") {
    return { tree, problems };
  }
  if (isEmpty(tree)) {
    return { tree: empty, problems };
  }
  problems.push({
    file,
    line: tree.at.line,
    path: "",
    message: "the top level must be a mapping of settings to values",
  });
  return { tree: empty, problems };
}

function growTree(
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
            ? "this alias (*name) has no anchor (&name) before it; put a value that starts with * in quotes"
            : "this alias (*name) is inside its own anchor; write the value out",
      });
      return scalar(null, at);
    }
    return growTree(target, document, place, problems, open);
  }
  open.add(node);
  try {
    if (isMap(node)) {
      return growMapping(node, document, place, problems, open);
    }
    if (isSeq(node)) {
      return {
        kind: "list",
        at: place(node),
        items: node.items.map((item) =>
          growTree(item, document, place, problems, open),
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

function growMapping(
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
    const key = keyOf(pair.key);
    const keyAt = isScalar(pair.key) ? place(pair.key) : at;
    const value =
      pair.value === null
        ? scalar(null, keyAt)
        : growTree(pair.value, document, place, problems, open);
    if (key === MERGE) {
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

/** Of a mapping to be merged, the parser has a symbol as the key. */
const MERGE = "<<";

function keyOf(key: unknown): string {
  const value = isScalar(key) ? key.value : key;
  return typeof value === "symbol" ? MERGE : String(value);
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

function syntaxMessage(
  { code, message, pos: [offset] }: YAMLParseError,
  text: string,
): string {
  switch (code) {
    case "DUPLICATE_KEY": {
      const key = /^[\w.-]{1,60}/.exec(text.slice(offset));
      return `${key === null ? "duplicate key" : `duplicate key "${key[0]}"`}; keep one`;
    }
    case "TAB_AS_INDENT":
      return "tab used for indentation; YAML allows only spaces";
    case "BAD_INDENT": {
      // Of a list or mapping in brackets: "… must be sufficiently indented and end with a ]".
      const [, closing] = /end with a (\S)/.exec(message) ?? [];
      return closing === undefined
        ? "the indentation differs from the other lines of this block"
        : `missing "${closing}"; every line before it must be indented`;
    }
    case "MISSING_CHAR":
      return "missing closing quote, bracket, brace or colon";
    case "BLOCK_AS_IMPLICIT_KEY":
    case "MULTILINE_IMPLICIT_KEY":
      return "a value and a nested block on one line; put the value in quotes or the block on separate lines";
    case "MULTIPLE_DOCS":
      return "several YAML documents (---); keep one";
    default:
      return "invalid YAML; check indentation, quotes and colons on this line and the previous one";
  }
}
