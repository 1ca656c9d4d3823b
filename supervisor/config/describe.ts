import { nearest } from "./nearest.ts";
import { place, type Source } from "./source.ts";

/** A check as a file has it. */
export type RawCheck = {
  readonly source: Source;
  readonly index: number;
  readonly value: unknown;
};
export type RawSetting = { readonly source: Source; readonly value: unknown };

type Issue = {
  readonly code?: string;
  readonly message: string;
  readonly path: readonly PropertyKey[];
  readonly keys?: readonly string[];
};

/** One of zod's findings as sentences with file and line. */
export function describeIssue(
  issue: Issue,
  checks: readonly RawCheck[],
  restarts: ReadonlyMap<string, RawSetting>,
): readonly string[] {
  const [section, key, ...rest] = issue.path;
  if (section === "restarts") {
    const names = issue.keys ?? [String(key)];
    return names.map((name) => {
      const source = restarts.get(name)?.source;
      const where =
        source === undefined ? "" : `${place(source, ["restarts", name])}: `;
      return `${where}restarts.${name}${issue.keys === undefined ? `: ${issue.message}.` : ` is no setting${meant(name)}`}`;
    });
  }
  const check = typeof key === "number" ? checks[key] : undefined;
  if (check === undefined) return [issue.message];
  const { source, index } = check;
  const where = (more: readonly PropertyKey[]) =>
    `${place(source, ["checks", index, ...more])}: checks[${nameOf(check.value) ?? index}]${more.length > 0 ? `.${more.join(".")}` : ""}`;
  if (issue.code === "unrecognized_keys")
    return (issue.keys ?? []).map(
      (name) => `${where([...rest, name])} is no setting${meant(name)}`,
    );
  if (issue.code === "invalid_union" && rest[0] === "kind")
    return [`${where(rest)} must be http, tcp or postgres.`];
  return [`${where(rest)}: ${issue.message}.`];
}

function meant(name: string): string {
  const near = nearest(name, knownKeys);
  return near === undefined ? "." : `, did you mean ${near}?`;
}

const knownKeys = [
  "name",
  "kind",
  "url",
  "host",
  "port",
  "expect",
  "status",
  "within",
  "json",
  "every",
  "timeout",
  "fail_after",
  "recover_after",
  "depends_on",
  "heal",
  "restart",
  "max",
  "per",
  "cooldown",
  "grace",
  "connections_below_percent",
  "first_wait",
  "longest_wait",
];

export function nameOf(value: unknown): string | undefined {
  const name: unknown =
    typeof value === "object" && value !== null
      ? Reflect.get(value, "name")
      : undefined;
  return typeof name === "string" ? name : undefined;
}
