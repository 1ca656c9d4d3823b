import { sum } from "../../core/sum.ts";
import { dictionary } from "../dictionary.ts";
import { Refusal } from "../refusal.ts";
import { memberAt, memberPath } from "./selector.ts";

/** Each document is read for each name of `fields`, in one turn of the vault's thread. */
const MAX_NAMES = 10_000;

/** The wanted members of a document. */
export type Projection = (
  document: Record<string, unknown>,
) => Record<string, unknown>;

/** Reads `fields`, a list of paths. Undefined when all members are wanted. */
export function readFields(fields: unknown): Projection | undefined {
  const paths = (Array.isArray(fields) ? fields : [])
    .filter((field) => typeof field === "string")
    .map(memberPath);
  if (sum(paths.map(({ length }) => length)) > MAX_NAMES) {
    throw new Refusal(
      "bad_request",
      `\`fields\` may contain at most ${MAX_NAMES} names of members.`,
    );
  }
  return paths.length === 0
    ? undefined
    : (document) => project(document, paths);
}

function project(
  document: Record<string, unknown>,
  paths: readonly (readonly string[])[],
): Record<string, unknown> {
  // A document may have a member `__proto__`.
  const shown = dictionary<unknown>();
  for (const names of paths) {
    const value = memberAt(document, names);
    if (value === undefined) {
      continue;
    }
    let place = shown;
    for (const name of names.slice(0, -1)) {
      place = (place[name] ??= dictionary()) as Record<string, unknown>;
    }
    place[names.at(-1)!] = value;
  }
  return shown;
}
