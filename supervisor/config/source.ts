import { readFileSync } from "node:fs";
import { basename } from "node:path";
import {
  isMap,
  isNode,
  isScalar,
  LineCounter,
  parseDocument,
  type Document,
} from "yaml";
import { codeOf, sentencesOf } from "../../core/failure.ts";

/** One configuration file, parsed but not yet checked. */
export interface Source {
  readonly path: string;
  readonly document: Document;
  readonly lines: LineCounter;
}
/** Reads a file; what is wrong with it as YAML goes to `errors`. */
export function openSource(path: string, errors: string[]): Source | undefined {
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
  for (const error of document.errors) {
    errors.push(
      `${basename(path)} line ${lines.linePos(error.pos[0]).line}: ${error.message.replace(/\.?$/, ".")}`,
    );
  }
  return document.errors.length > 0 ? undefined : { path, document, lines };
}

/** What a file may hold: lists of named entries, and mappings whose keys win singly. */
export const sections: Readonly<Record<string, "list" | "mapping">> = {
  restarts: "mapping",
  checks: "list",
  maintenance: "list",
  offline: "mapping",
  jobs: "mapping",
  backups: "mapping",
  notes: "mapping",
  notify: "list",
  watchdog: "mapping",
  peer: "mapping",
};

/** One section of a file; undefined when it is not there or empty. */
export function section(source: Source, name: string): unknown {
  const { contents } = source.document;
  if (!isMap(contents)) {
    return undefined;
  }
  const value = contents.items.find(
    ({ key }) => isScalar(key) && key.value === name,
  )?.value;
  return value === null || (isScalar(value) && value.value === null)
    ? undefined
    : value;
}

/** A file must be a mapping of known sections (or empty). */
export function checkSections(source: Source, errors: string[]): void {
  const { contents } = source.document;
  if (contents === null || (isScalar(contents) && contents.value === null)) {
    return;
  }
  if (!isMap(contents)) {
    errors.push(
      `${at(source, contents)}: must hold a mapping such as "checks:".`,
    );
    return;
  }
  for (const { key } of contents.items) {
    const name = isScalar(key) ? String(key.value) : "";
    if (!Object.hasOwn(sections, name)) {
      errors.push(
        `${at(source, key)}: there is no section "${name}"; there are ${listed(Object.keys(sections))}.`,
      );
    }
  }
}

function listed(names: readonly string[]): string {
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

export function plainValue(source: Source, node: unknown): unknown {
  return isNode(node) ? (node.toJS(source.document) as unknown) : node;
}

/** "supervisor.yaml line 7" for the deepest part of a path that is there. */
export function place(source: Source, path: readonly PropertyKey[]): string {
  return `${basename(source.path)} line ${lineAt(source, path)}`;
}

function lineAt(source: Source, path: readonly PropertyKey[]): number {
  for (let depth = path.length; depth > 0; depth -= 1) {
    const keys = path.slice(0, depth);
    const parent: unknown = source.document.getIn(keys.slice(0, -1), true);
    if (isMap(parent)) {
      const pair = parent.items.find(
        ({ key }) => isScalar(key) && key.value === keys.at(-1),
      );
      if (pair !== undefined) {
        return lineOf(source, pair.key);
      }
    }
    const node: unknown = source.document.getIn(keys, true);
    if (isNode(node)) {
      return lineOf(source, node);
    }
  }
  return 1;
}

/** "supervisor.yaml line 7" */
export function at(source: Source, node: unknown): string {
  return `${basename(source.path)} line ${lineOf(source, node)}`;
}

function lineOf(source: Source, node: unknown): number {
  return isNode(node) && node.range != null
    ? source.lines.linePos(node.range[0]).line
    : 1;
}
