import { z } from "zod";
import type { ConfigProblem } from "../../core/config/problem.ts";
import {
  issueProblem,
  unknownSetting,
  type Reading,
} from "../../core/config/reading.ts";
import { configSchema } from "./schema.ts";
import { SECTIONS } from "./sections.ts";

interface SchemaIssue {
  readonly code?: string;
  readonly message: string;
  readonly path: readonly PropertyKey[];
  readonly keys?: readonly string[];
  /** Of a discriminated union: the allowed values of its field. */
  readonly options?: readonly unknown[];
}

/** One of zod's issues as problems with file and line. */
export function settingProblems(
  reading: Reading,
  issue: SchemaIssue,
): readonly ConfigProblem[] {
  if (issue.code === "unrecognized_keys") {
    const path = issue.path.map((step) =>
      typeof step === "number" ? step : String(step),
    );
    return (issue.keys ?? []).map((key) =>
      unknownSetting(reading, [...path, key], settingNames()),
    );
  }
  const message =
    issue.code === "invalid_union" && issue.options !== undefined
      ? `must be one of ${issue.options.join(", ")}`
      : issue.message;
  return [
    issueProblem(reading, [], { path: issue.path, message }, settingNames()),
  ];
}

/** Every setting of the schema at any depth, from its JSON Schema. */
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
  return [...names].filter((name) => !Object.hasOwn(SECTIONS, name));
}
