import { nearest } from "../nearest.ts";
import { unknownName, type ConfigProblem } from "./problem.ts";
import { isEmpty, locate, type Mapping, type Tree } from "./tree.ts";

/** A configuration being read: the merged files and what was found in them so far. */
export interface Reading {
  readonly root: Mapping;
  readonly problems: ConfigProblem[];
  readonly warnings: ConfigProblem[];
}

export type Path = readonly (string | number)[];

/** What a validator such as zod reports about one value. */
interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

export function problemAt(
  { root }: Pick<Reading, "root">,
  path: Path,
  message: string,
): ConfigProblem {
  const { at, shown } = locate(root, path);
  return { file: at.file, line: at.line, path: shown, message };
}

/** The problem of a key that is not a setting, at the key's line and the path of its section. */
export function unknownSetting(
  { root }: Pick<Reading, "root">,
  path: Path,
  known: readonly string[],
): ConfigProblem {
  const { at } = locate(root, path);
  const { shown } = locate(root, path.slice(0, -1));
  const message = unknownName("setting", String(path.at(-1)), known);
  return { file: at.file, line: at.line, path: shown, message };
}

/**
 * The problem of an issue within the section at `path`; the rejected value is quoted unless it could be a secret. Where a
 * setting is missing and a key that is not in `known` has a similar name, that key is the problem.
 */
export function issueProblem(
  reading: Pick<Reading, "root">,
  path: Path,
  issue: Issue,
  known: readonly string[],
): ConfigProblem {
  const full = [...path, ...issue.path.map(plainStep)];
  const { node } = locate(reading.root, full);
  const misspelled =
    node === null ? misspelledSetting(reading, full, known) : undefined;
  return (
    misspelled ?? problemAt(reading, full, describe(node, full, issue.message))
  );
}

/** The problem of an unknown key in place of the setting at `path`, which is missing, or of a section around it. */
export function misspelledSetting(
  reading: Pick<Reading, "root">,
  path: Path,
  known: readonly string[],
): ConfigProblem | undefined {
  const missingAt = path.findIndex(
    (_step, depth) =>
      locate(reading.root, path.slice(0, depth + 1)).node === null,
  );
  const section = path.slice(0, missingAt);
  const { node } = locate(reading.root, section);
  if (missingAt < 0 || node?.kind !== "map") {
    return undefined;
  }
  const missing = String(path[missingAt]);
  const spellings = [missing, ...(SPELLINGS[missing] ?? [])];
  const key = [...node.entries.keys()].find(
    (each) =>
      ![...known, ...spellings].includes(each) &&
      nearest(each, spellings) !== undefined,
  );
  return key === undefined
    ? undefined
    : unknownSetting(reading, [...section, key], spellings);
}

/** LiteLLM's names of settings, by Hearth's. */
export const SPELLINGS: Readonly<Record<string, readonly string[]>> = {
  proxy_settings: ["litellm_settings"],
  provider_params: ["litellm_params"],
};

function plainStep(step: PropertyKey): string | number {
  return typeof step === "symbol" ? String(step) : step;
}

function describe(node: Tree | null, path: Path, message: string): string {
  if (node?.kind === "scalar" && node.unset !== null) {
    return `${node.unset} is not set: set it, or write the value here`;
  }
  const allowed = /^must /.test(message) ? message : null;
  if (node === null || isEmpty(node)) {
    return allowed === null
      ? isGeneric(message)
        ? "is required"
        : message
      : `is required and ${allowed}`;
  }
  const given = allowed === null ? null : givenValue(node, path);
  return given === null ? message : `${message}; ${given}`;
}

/** A validator's own words for a value that is absent. */
function isGeneric(message: string): boolean {
  return /^(Invalid|Required)/.test(message);
}

const SECRET_KEY =
  /key$|password|secret|(?<!cost_per_)token$|database_url|headers|authorization/i;
const SECRET_VALUE =
  /^(sk|pk|gsk|xai|hf|ghp|key)[-_]|^AIza|^eyJ|:\/\/[^/]*@|^[\w+/=-]{32,}$/i;
/** Sections in which any address may be a secret, such as that of a webhook. */
const SECRET_SECTIONS: readonly unknown[] = [
  "notify",
  "watchdog",
  "call_webhook",
  "tracing",
];

/** A rejected value in words; null where it could be a secret. */
function givenValue(node: Tree, path: Path): string | null {
  switch (node.kind) {
    case "map":
      return "it is a mapping";
    case "list":
      return "it is a list";
    case "scalar": {
      if (node.variables.length > 0) {
        return `the value of ${node.variables.join(" and ")} is not`;
      }
      const text = JSON.stringify(node.value);
      const isHidden =
        path.slice(0, 2).some((step) => SECRET_SECTIONS.includes(step)) ||
        path.some((step) => SECRET_KEY.test(String(step))) ||
        SECRET_VALUE.test(String(node.value)) ||
        text.length > 60;
      return isHidden ? null : `it is ${text}`;
    }
  }
}
