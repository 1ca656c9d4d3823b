import { z } from "zod";
import { nearest } from "../../core/nearest.ts";
import { whereIs, type RawEntry } from "./raw-entry.ts";
import { configSchema } from "./schema.ts";
import { sections } from "./source.ts";

interface Issue {
  readonly code?: string;
  readonly message: string;
  readonly path: readonly PropertyKey[];
  readonly keys?: readonly string[];
  /** Of a discriminated union: its field, and what that may be. */
  readonly discriminator?: string;
  readonly options?: readonly unknown[];
}

/** One of zod's findings as sentences with file and line. */
export function describeIssue(
  issue: Issue,
  entries: readonly RawEntry[],
): readonly string[] {
  const [section, key, ...rest] = issue.path;
  const own = entries.filter((entry) => entry.section === section);
  if (issue.code === "unrecognized_keys") {
    return (issue.keys ?? []).map((name) => {
      const entry =
        key === undefined
          ? own.find((each) => each.key === name)
          : entryAt(own, key);
      const path = key === undefined ? [] : [...rest, name];
      return entry === undefined
        ? issue.message
        : `${whereIs(entry, path)} is no setting${meant(name)}`;
    });
  }
  const entry = entryAt(own, key);
  if (entry === undefined) {
    return [`${issue.path.join(".")}: ${issue.message}.`];
  }
  if (issue.code === "invalid_union" && issue.options !== undefined) {
    return [`${whereIs(entry, rest)} must be ${oneOf(issue.options)}.`];
  }
  return [`${whereIs(entry, rest)}: ${issue.message}.`];
}

/** Of a list the position among what was kept, of a mapping the key. */
function entryAt(
  own: readonly RawEntry[],
  key: PropertyKey | undefined,
): RawEntry | undefined {
  return typeof key === "number"
    ? own[key]
    : own.find((entry) => entry.key === key);
}

function oneOf(options: readonly unknown[]): string {
  const words = options.map(String);
  return words.length < 2
    ? words.join("")
    : `${words.slice(0, -1).join(", ")} or ${words.at(-1) ?? ""}`;
}

function meant(name: string): string {
  const near = nearest(name, settingNames());
  return near === undefined ? "." : `, did you mean ${near}?`;
}

/** Every key that the schema knows anywhere, as its JSON Schema tells. */
function settingNames(): readonly string[] {
  const names = new Set<string>();
  const collect = (node: unknown): void => {
    if (typeof node !== "object" || node === null) {
      return;
    }
    for (const [key, value] of Object.entries(node)) {
      if (key === "properties" && typeof value === "object" && value !== null) {
        for (const name of Object.keys(value)) {
          names.add(name);
        }
      }
      collect(value);
    }
  };
  collect(
    z.toJSONSchema(configSchema, { io: "input", unrepresentable: "any" }),
  );
  for (const name of Object.keys(sections)) {
    names.delete(name);
  }
  return [...names];
}
