import { readFileSync } from "node:fs";
import * as pulumi from "@pulumi/pulumi";
import { parse } from "yaml";
import { unknownName } from "../../core/config/problem.ts";
import { removeCommand } from "../config/config-fixes.ts";
import { inProject } from "../project-files.ts";
import type { ChartValues } from "./chart-values.ts";

/** The chart's own values; the operator's are checked against their names. */
const VALUES_FILE = "charts/hearth/values.yaml";

/** Mistakes in `chartValues`: names that the chart does not have, and values that another setting decides. */
export function furtherValueMistakes(
  further: ChartValues,
  decided: ChartValues,
): readonly string[] {
  const known = parse(readFileSync(inProject(VALUES_FILE), "utf8")) as unknown;
  return [
    ...unknownNames(further, known, []),
    ...decidedTwice(further, decided, []),
  ];
}

/** The values of the settings, completed by `chartValues`. */
export function mergeValues(
  decided: ChartValues,
  further: ChartValues,
): ChartValues {
  return {
    ...further,
    ...Object.fromEntries(
      Object.entries(decided).map(([name, value]) => {
        const added = further[name];
        return [
          name,
          isGroup(value) && isGroup(added) ? mergeValues(value, added) : value,
        ];
      }),
    ),
  };
}

function unknownNames(
  values: ChartValues,
  known: unknown,
  path: readonly string[],
): readonly string[] {
  // Below an empty mapping, names are the operator's.
  if (!isGroup(known) || Object.keys(known).length === 0) {
    return [];
  }
  return Object.entries(values).flatMap(([name, value]) => {
    const at = [...path, name];
    if (!(name in known)) {
      return [
        `hearth:${["chartValues", ...path].join(".")}: ${unknownName("value", name, Object.keys(known))}: ${removal(at)}`,
      ];
    }
    return isGroup(value) ? unknownNames(value, known[name], at) : [];
  });
}

function decidedTwice(
  values: ChartValues,
  decided: ChartValues,
  path: readonly string[],
): readonly string[] {
  return Object.entries(values).flatMap(([name, value]) => {
    const at = [...path, name];
    const other = decided[name];
    if (other === undefined) {
      return [];
    }
    return isGroup(value) && isGroup(other)
      ? decidedTwice(value, other, at)
      : [
          `hearth:${["chartValues", ...at].join(".")} is decided by another setting of the stack (config/grown.example.yaml): ${removal(at)}`,
        ];
  });
}

function removal(path: readonly string[]): string {
  return removeCommand(["chartValues", ...path]);
}

function isGroup(value: unknown): value is ChartValues {
  return (
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    !pulumi.Output.isInstance(value)
  );
}
