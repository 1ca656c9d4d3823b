import { resolve } from "node:path";
import { readLayer } from "../../core/config/layers.ts";
import { formatProblem, sortProblems } from "../../core/config/problem.ts";
import type { Reading } from "../../core/config/reading.ts";
import { resolveMapping } from "../../core/config/references.ts";
import { plain, textOf, type Mapping } from "../../core/config/tree.ts";
import { Failure } from "../../core/failure.ts";
import { checkSchema } from "../checks/config.ts";
import { projectRoot } from "../home/home.ts";
import { crossCheck } from "./cross-check.ts";
import { mergeSections } from "./merge-sections.ts";
import { configSchema, type SupervisorConfig } from "./schema.ts";
import { readSections } from "./sections.ts";
import { settingProblems } from "./setting-problems.ts";
import { serverAddress } from "../../core/server-address.ts";

export const shippedConfig: string = resolve(
  projectRoot,
  "config",
  "supervisor.yaml",
);

/** The value of an environment variable, or of the file that its NAME_FILE points to. */
export type Variables = (name: string) => string | undefined;

export interface LoadedConfig {
  readonly config: SupervisorConfig;
  /** What was skipped because a variable is not set, one sentence each. */
  readonly leftOut: readonly string[];
}

/**
 * Reads the files, lowest layer first (mergeSections). `${NAME}` and `${NAME:-default}` in values come from `variables`. Where
 * no file has `checks:`, those of the shipped one are used. Throws a Failure with every mistake of all files, each with its line.
 */
export function loadConfig(
  paths: readonly string[],
  variables: Variables,
): LoadedConfig {
  const problems: Reading["problems"] = [];
  const files: string[] = [];
  const read = (path: string): readonly Mapping[] => {
    const layer = readLayer(resolve(path), projectRoot);
    if (!layer.ok) {
      problems.push(layer.problem);
      return [];
    }
    files.push(layer.file);
    problems.push(...layer.problems);
    return [readSections({ root: layer.tree, problems, warnings: [] })];
  };
  const written = paths.flatMap(read);
  const layers = written.some(({ entries }) => entries.has("checks"))
    ? written
    : [...read(shippedConfig).map(checksOnly), ...written];
  const { tree, skipped } = mergeSections(
    layers.map((layer) =>
      resolveMapping(layer, (name) => variables(name) ?? null),
    ),
  );
  const reading = { root: tree, problems, warnings: [] };
  const parsed = configSchema.safeParse(plain(tree));
  if (!parsed.success) {
    problems.push(
      ...parsed.error.issues.flatMap((issue) =>
        settingProblems(reading, issue),
      ),
    );
  }
  crossCheck(reading, layers.flatMap(checkNames));
  if (problems.length > 0 || !parsed.success) {
    throw new Failure(sortProblems(problems, files).map(formatProblem));
  }
  return {
    config: withPeer(parsed.data, variables("HEARTH_PEER_URL")),
    leftOut: skipped,
  };
}

function checksOnly(layer: Mapping): Mapping {
  const checks = layer.entries.get("checks");
  return {
    ...layer,
    entries: new Map(checks === undefined ? [] : [["checks", checks]]),
  };
}

/** As written, whether or not the variables of a check are set here. */
function checkNames(layer: Mapping): readonly string[] {
  const checks = layer.entries.get("checks")?.node;
  return checks?.kind === "list"
    ? checks.items.flatMap((item) => textOf(item, "name") ?? [])
    : [];
}

/** The other host's supervisor is checked like any other service, unless a check named `peer` is configured. */
function withPeer(
  config: SupervisorConfig,
  deployed: string | undefined,
): SupervisorConfig {
  const url = config.peer.url ?? deployed;
  if (url === undefined || config.checks.some(({ name }) => name === "peer")) {
    return config;
  }
  const peer = checkSchema.parse({
    name: "peer",
    kind: "http",
    url: `${serverAddress(url)}/healthz`,
    // Two minutes at five seconds each: a deployment replaces it in less.
    fail_after: 24,
  });
  return { ...config, checks: [...config.checks, peer] };
}
