import { unknownName } from "../../core/config/problem.ts";
import {
  problemAt,
  type Path,
  type Reading,
} from "../../core/config/reading.ts";
import { textOf, textsOf, type Tree } from "../../core/config/tree.ts";
import { isSecretSetting } from "../alerts/config.ts";
import { SECTIONS } from "./sections.ts";

/**
 * Adds the mistakes that a single entry cannot show: repeated names, dependencies that are absent or circular, maintenance of
 * unknown checks, secrets in a file. `written` are the names of all checks, including those skipped on this host.
 */
export function crossCheck(reading: Reading, written: readonly string[]): void {
  const report = (path: Path, message: string): void => {
    reading.problems.push(problemAt(reading, path, message));
  };
  for (const section of Object.keys(SECTIONS)) {
    checkNamesUnique(section, itemsOf(reading, section), report);
  }
  const checks = itemsOf(reading, "checks");
  checkDependencies(checks, report);
  checkMaintenance(itemsOf(reading, "maintenance"), written, report);
  checkCycles(checks, report);
  for (const section of ["notify", "sign_in"]) {
    checkSecrets(section, itemsOf(reading, section), report);
  }
}

type Report = (path: Path, message: string) => void;

function itemsOf({ root }: Reading, section: string): readonly Tree[] {
  const node = root.entries.get(section)?.node;
  return node?.kind === "list" ? node.items : [];
}

function checkNamesUnique(
  section: string,
  items: readonly Tree[],
  report: Report,
): void {
  const known = new Set<string>();
  for (const [index, item] of items.entries()) {
    const name = textOf(item, "name");
    if (name !== undefined && known.has(name)) {
      report(
        [section, index, "name"],
        `"${name}" already exists; names must be unique`,
      );
    }
    known.add(name ?? "");
  }
}

function checkDependencies(checks: readonly Tree[], report: Report): void {
  const names = checks.flatMap((check) => textOf(check, "name") ?? []);
  for (const [index, check] of checks.entries()) {
    const own = textOf(check, "name");
    const others = names.filter((other) => other !== own);
    for (const name of textsOf(check, "depends_on")) {
      if (!others.includes(name)) {
        report(
          ["checks", index, "depends_on"],
          name === own
            ? `check "${name}" must not depend on itself`
            : unknownName("check", name, others),
        );
      }
    }
  }
}

/** The peer's check and those of containers and pods come from the deployment, not from a file. */
const DEPLOYED_CHECK = /^peer$|^kubernetes$|-container$/;

/** A window for an unknown check would have no effect. */
function checkMaintenance(
  windows: readonly Tree[],
  checks: readonly string[],
  report: Report,
): void {
  for (const [index, window] of windows.entries()) {
    for (const name of textsOf(window, "checks")) {
      if (!checks.includes(name) && !DEPLOYED_CHECK.test(name)) {
        report(
          ["maintenance", index, "checks"],
          unknownName("check", name, checks),
        );
      }
    }
  }
}

/** A secret in a file is copied with the file, so the file may only refer to a variable. */
function checkSecrets(
  section: string,
  items: readonly Tree[],
  report: Report,
): void {
  for (const [index, item] of items.entries()) {
    if (item.kind !== "map") {
      continue;
    }
    for (const [key, { node }] of item.entries) {
      const isReference =
        node.kind === "scalar" &&
        /^\$\{[A-Z][A-Z0-9_]*\}$/.test(String(node.written));
      if (isSecretSetting(textOf(item, "kind"), key) && !isReference) {
        report(
          [section, index, key],
          "must not contain a secret: write ${NAME}, and set the variable NAME, or NAME_FILE to the path of a file",
        );
      }
    }
  }
}

function checkCycles(checks: readonly Tree[], report: Report): void {
  const needs = new Map(
    checks.map((check) => [
      textOf(check, "name"),
      textsOf(check, "depends_on"),
    ]),
  );
  for (const [index, check] of checks.entries()) {
    const name = textOf(check, "name");
    const cycle = name === undefined ? undefined : findCycle(name, [], needs);
    // Reported once, at the first check of the cycle.
    if (cycle !== undefined && cycle[0] === name && startsFirst(cycle, needs)) {
      report(
        ["checks", index, "depends_on"],
        `circular dependency: ${cycle.join(" → ")}`,
      );
    }
  }
}

function findCycle(
  name: string,
  path: readonly string[],
  needs: ReadonlyMap<string | undefined, readonly string[]>,
): readonly string[] | undefined {
  const start = path.indexOf(name);
  if (start >= 0) {
    return [...path.slice(start), name];
  }
  for (const next of needs.get(name) ?? []) {
    const cycle =
      next === name ? undefined : findCycle(next, [...path, name], needs);
    if (cycle !== undefined) {
      return cycle;
    }
  }
  return undefined;
}

function startsFirst(
  cycle: readonly string[],
  needs: ReadonlyMap<string | undefined, unknown>,
): boolean {
  const order = [...needs.keys()];
  const positions = cycle.map((name) => order.indexOf(name));
  return positions[0] === Math.min(...positions);
}
