import { isSecretSetting } from "../alerts/config.ts";
import { nearest } from "../../core/nearest.ts";
import { nameOf, namesIn, whereIs, type RawEntry } from "./raw-entry.ts";

/**
 * What one entry alone cannot know: names used twice, dependencies that are not there or go in a circle, maintenance of checks
 * that are nowhere, secrets in a file. `written` are the names of all checks, those left out here too.
 */
export function crossCheck(
  entries: readonly RawEntry[],
  written: readonly string[],
): readonly string[] {
  const checks = entries.filter(({ section }) => section === "checks");
  const names = checks.flatMap(({ value }) => nameOf(value) ?? []);
  const repeated = entries.flatMap((entry, position) => {
    const name = nameOf(entry.value);
    const first = entries.findIndex(
      (other) =>
        other.section === entry.section && nameOf(other.value) === name,
    );
    return name === undefined || first === position
      ? []
      : [
          `${whereIs(entry, ["name"])}: "${name}" is used twice, names are unique.`,
        ];
  });
  const strangers = checks.flatMap((check) => {
    const own = nameOf(check.value);
    const others = names.filter((other) => other !== own);
    return namesIn(check.value, "depends_on")
      .filter((name) => !others.includes(name))
      .map(
        (name) =>
          `${whereIs(check, ["depends_on"])}: there is no other check "${name}"; there are ${others.join(", ")}.`,
      );
  });
  return [
    ...repeated,
    ...strangers,
    ...maintainedStrangers(entries, written),
    ...circles(checks),
    ...writtenSecrets(entries),
  ];
}

/** The peer's check and those of containers come from the deployment, not from a file. */
const FROM_ELSEWHERE = /^peer$|-container$/;

/** A window for a check that is not there would cover nothing. */
function maintainedStrangers(
  entries: readonly RawEntry[],
  checks: readonly string[],
): readonly string[] {
  return entries
    .filter(({ section }) => section === "maintenance")
    .flatMap((window) =>
      namesIn(window.value, "checks")
        .filter((name) => !checks.includes(name) && !FROM_ELSEWHERE.test(name))
        .map((name) => {
          const meant = nearest(name, checks);
          const advice =
            meant === undefined
              ? `there are ${checks.join(", ")}.`
              : `did you mean ${meant}?`;
          return `${whereIs(window, ["checks"])}: there is no check "${name}"; ${advice}`;
        }),
    );
}

/** A secret in a file is copied with it, so it may only be named there. */
function writtenSecrets(entries: readonly RawEntry[]): readonly string[] {
  return entries.flatMap((entry) => {
    const { section, written } = entry;
    if (
      section !== "notify" ||
      typeof written !== "object" ||
      written === null
    ) {
      return [];
    }
    return Object.entries(written)
      .filter(
        ([key, value]) =>
          isSecretSetting(Reflect.get(written, "kind"), key) &&
          !/^\$\{[A-Z][A-Z0-9_]*\}$/.test(String(value)),
      )
      .map(
        ([key]) =>
          `${whereIs(entry, [key])} is a secret and must not stand in a file: write \${NAME}, and put it into the variable NAME or the file that NAME_FILE points to.`,
      );
  });
}

function circles(checks: readonly RawEntry[]): readonly string[] {
  const needs = new Map(
    checks.map(({ value }) => [nameOf(value), namesIn(value, "depends_on")]),
  );
  const walk = (
    name: string,
    way: readonly string[],
  ): readonly string[] | undefined => {
    const seen = way.indexOf(name);
    if (seen >= 0) {
      return [...way.slice(seen), name];
    }
    for (const next of needs.get(name) ?? []) {
      const circle = next === name ? undefined : walk(next, [...way, name]);
      if (circle !== undefined) {
        return circle;
      }
    }
    return undefined;
  };
  return checks.flatMap((check) => {
    const name = nameOf(check.value);
    const circle = name === undefined ? undefined : walk(name, []);
    // Said once, where the circle begins.
    return circle === undefined || circle[0] !== name || !isFirst(circle, needs)
      ? []
      : [
          `${whereIs(check, ["depends_on"])}: goes in a circle, ${circle.join(" → ")}.`,
        ];
  });
}

function isFirst(
  circle: readonly string[],
  needs: ReadonlyMap<string | undefined, unknown>,
): boolean {
  const order = [...needs.keys()];
  const places = circle.map((name) => order.indexOf(name));
  return places[0] === Math.min(...places);
}
