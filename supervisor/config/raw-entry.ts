import { place, type Source } from "./source.ts";

/** One entry of a section as a file has it: of a list its position, of a mapping its key. */
export interface RawEntry {
  readonly section: string;
  readonly source: Source;
  readonly key: number | string;
  /** As in the file, before variables were put in. */
  readonly written: unknown;
  readonly value: unknown;
}

export function nameOf(value: unknown): string | undefined {
  const name = fieldOf(value, "name");
  return typeof name === "string" ? name : undefined;
}

/** Texts of a list such as `depends_on`; none when it is anything else. */
export function namesIn(value: unknown, field: string): readonly string[] {
  const list = fieldOf(value, field);
  return Array.isArray(list)
    ? list.filter((name) => typeof name === "string")
    : [];
}

function fieldOf(value: unknown, field: string): unknown {
  return typeof value === "object" && value !== null
    ? Reflect.get(value, field)
    : undefined;
}

/** "supervisor.yaml line 7: checks[gateway].every" */
export function whereIs(entry: RawEntry, path: readonly PropertyKey[]): string {
  const { section, source, key, value } = entry;
  const own =
    typeof key === "number"
      ? `${section}[${nameOf(value) ?? key}]`
      : `${section}.${key}`;
  const more = path.map((part) => `.${String(part)}`).join("");
  return `${place(source, [section, key, ...path])}: ${own}${more}`;
}
