import type { z } from "zod";
import {
  problemAt,
  unknownSetting,
  type Path,
  type Reading,
} from "../../core/config/reading.ts";
import { locate, plain } from "../../core/config/tree.ts";
import { readSection } from "./sections.ts";

/** Reads a mapping in which an unknown setting is a problem: without it a guardrail may check less than it should. */
export function readStrictly<S extends z.ZodObject>(
  reading: Reading,
  path: Path,
  schema: S,
): z.output<S> | null {
  const known = Object.keys(schema.shape);
  const { node } = locate(reading.root, path);
  const unknown =
    node?.kind === "map"
      ? [...node.entries.keys()].filter((key) => !known.includes(key))
      : [];
  for (const key of unknown) {
    reading.problems.push(unknownSetting(reading, [...path, key], known));
  }
  // Its warnings are those problems, and unset variables, which leave a required setting missing.
  return readSection({ ...reading, warnings: [] }, path, schema);
}

/** The paths of a list's items; none if it is absent. A value that is no list becomes a problem. */
export function itemPaths(reading: Reading, path: Path): readonly Path[] {
  const { node } = locate(reading.root, path);
  if (node === null || (node.kind === "scalar" && node.value === null)) {
    return [];
  }
  if (node.kind !== "list") {
    reading.problems.push(problemAt(reading, path, "must be a list"));
    return [];
  }
  return node.items.map((_, index) => [...path, index]);
}

/** The value at a path; undefined: there is none. */
export function valueAt(reading: Reading, path: Path): unknown {
  const { node } = locate(reading.root, path);
  return node === null ? undefined : plain(node);
}
