import { firstUnset } from "../../core/config/references.ts";
import {
  textOf,
  type Entry,
  type List,
  type Mapping,
  type Tree,
} from "../../core/config/tree.ts";
import { SECTIONS } from "./sections.ts";

interface MergedSections {
  readonly tree: Mapping;
  /** What was skipped because a variable is not set. */
  readonly skipped: readonly string[];
}

/**
 * The layers' sections, lowest layer first: entries of a list are added or replace those of the same name, settings of a
 * mapping are replaced one by one. Entries and settings with an unset variable are skipped.
 */
export function mergeSections(layers: readonly Mapping[]): MergedSections {
  const entries = new Map<string, Entry>();
  const skipped: string[] = [];
  for (const [name, shape] of Object.entries(SECTIONS)) {
    const own = layers.flatMap(({ entries }) => entries.get(name) ?? []);
    const top = own.at(-1);
    if (top !== undefined) {
      const nodes = own.map(({ node }) => node);
      const node =
        shape === "list"
          ? mergeLists(name, nodes, top, skipped)
          : mergeSettings(name, nodes, top, skipped);
      entries.set(name, { ...top, node });
    }
  }
  const at = layers.at(-1)?.at ?? { file: "", line: 1 };
  return { tree: { kind: "map", at, entries }, skipped };
}

function mergeLists(
  section: string,
  layers: readonly Tree[],
  { at }: Entry,
  skipped: string[],
): List {
  const byName = new Map<unknown, Tree>();
  const removed = new Set<string>();
  for (const layer of layers) {
    const ofLayer = new Set<unknown>();
    const items = layer.kind === "list" ? layer.items : [];
    for (const [index, item] of items.entries()) {
      const name = textOf(item, "name");
      const unset = firstUnset(item);
      if (unset !== null) {
        skipped.push(
          `${singular(section)} ${name ?? index + 1} skipped: ${unset} is not set`,
        );
      }
      if (unset !== null || isDisabled(item)) {
        byName.delete(name);
        removed.add(name ?? "");
        continue;
      }
      // Repeated names within a file are kept: they are reported as a mistake.
      const isOwn = name !== undefined && !ofLayer.has(name);
      byName.set(isOwn ? name : Symbol(section), item);
      ofLayer.add(name);
    }
  }
  const absent = [...removed].filter((name) => !byName.has(name));
  const items = [...byName.values()].map((item) =>
    withoutDependencies(item, absent),
  );
  return { kind: "list", at, items };
}

function mergeSettings(
  section: string,
  layers: readonly Tree[],
  { at }: Entry,
  skipped: string[],
): Mapping {
  const merged = new Map<string, Entry>();
  for (const layer of layers) {
    const settings =
      layer.kind === "map" ? layer.entries : new Map<string, Entry>();
    for (const [key, entry] of settings) {
      const unset = firstUnset(entry.node);
      if (unset !== null) {
        merged.delete(key);
        skipped.push(`${section}.${key} skipped: ${unset} is not set`);
      } else if (!isEmptyText(entry.node)) {
        merged.set(key, entry);
      }
    }
  }
  return { kind: "map", at, entries: merged };
}

/** `only_if: ${NAME:-}` disables an entry without a notice where that variable is not set. */
function isDisabled(item: Tree): boolean {
  return textOf(item, "only_if") === "";
}

/** `${NAME:-}` without the variable counts as not set. */
function isEmptyText(node: Tree): boolean {
  return node.kind === "scalar" && node.value === "";
}

/** "check" for the section "checks"; "notify" and "maintenance" are unchanged. */
function singular(section: string): string {
  return section.replace(/s$/, "");
}

/** The entry without dependencies on checks that are absent on this host. */
function withoutDependencies(item: Tree, absent: readonly string[]): Tree {
  const entry =
    item.kind === "map" ? item.entries.get("depends_on") : undefined;
  if (item.kind !== "map" || entry?.node.kind !== "list") {
    return item;
  }
  const items = entry.node.items.filter(
    (each) => each.kind !== "scalar" || !absent.includes(String(each.value)),
  );
  return {
    ...item,
    entries: new Map(item.entries).set("depends_on", {
      ...entry,
      node: { ...entry.node, items },
    }),
  };
}
