import { dirname, resolve } from "node:path";
import { existsSync } from "node:fs";
import { assemble } from "./assemble.ts";
import { readDeployments } from "./deployments.ts";
import { checkFallbackTargets } from "./fallbacks.ts";
import { readGuardrails } from "./guardrails.ts";
import { readLayers } from "./layers.ts";
import type { Parts } from "./parts.ts";
import { sortProblems, type ConfigProblem } from "../../core/config/problem.ts";
import {
  resolveMapping,
  variableReader,
  type ReadVariable,
} from "../../core/config/references.ts";
import {
  cacheParams,
  callWebhookSettings,
  generalSettings,
  proxySettings,
  retention,
  routerSettings,
  SECTIONS,
  tracingSettings,
} from "./schema.ts";
import { problemAt, type Reading } from "../../core/config/reading.ts";
import { contradictsVariable, readSection, unusedSetting } from "./sections.ts";
import { child, locate, plain, type Mapping } from "../../core/config/tree.ts";
import type { GatewayConfig } from "./types.ts";

export interface LoadOptions {
  /** `--config`: this file alone; else `HEARTH_GATEWAY_CONFIG`; else the shipped file with the operator's over it. */
  readonly file?: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly projectRoot: string;
  /** `--port` */
  readonly port?: number | string;
}

export type LoadResult =
  | {
      readonly ok: true;
      readonly config: GatewayConfig;
      readonly warnings: readonly ConfigProblem[];
    }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] };

/** Reads, merges and checks the configuration; reports every mistake at once. */
export function loadConfig(options: LoadOptions): LoadResult {
  const problems: ConfigProblem[] = [];
  const warnings: ConfigProblem[] = [];
  const readEnvironment = variableReader(options.env, problems);
  const layers = readLayers({
    file: options.file ?? readEnvironment("HEARTH_GATEWAY_CONFIG"),
    extra: readEnvironment("HEARTH_EXTRA_CONFIG"),
    local: readEnvironment("HEARTH_LOCAL_CONFIG"),
    projectRoot: options.projectRoot,
  });
  problems.push(...layers.problems);
  warnings.push(...layers.warnings);

  const read = withFileVariables(layers.tree, readEnvironment);
  const reading: Reading = {
    root: resolveMapping(layers.tree, read),
    problems,
    warnings,
  };
  warnAboutSections(reading);
  rejectContradictions(reading, readEnvironment);
  const config = assemble(reading, read, {
    ...readParts(reading, read, options),
    files: layers.files,
  });
  checkFallbackTargets(reading, config);
  return problems.length === 0
    ? { ok: true, config, warnings }
    : { ok: false, problems: sortProblems(problems, layers.files) };
}

function readParts(
  reading: Reading,
  read: ReadVariable,
  { projectRoot, port }: LoadOptions,
): Omit<Parts, "files"> {
  const models = readDeployments(reading, read);
  const router = readSection(reading, ["router_settings"], routerSettings, {
    quiet: ["redis_host", "redis_port", "redis_password"],
  });
  const proxy = readSection(reading, ["proxy_settings"], proxySettings);
  const cache = readSection(
    reading,
    ["proxy_settings", "cache_params"],
    cacheParams,
    { quiet: ["host", "port", "password"] },
  );
  const tracing = readSection(
    reading,
    ["proxy_settings", "tracing"],
    tracingSettings,
  );
  const callWebhook = readSection(
    reading,
    ["proxy_settings", "call_webhook"],
    callWebhookSettings,
  );
  const general = readSection(reading, ["general_settings"], generalSettings, {
    quiet: ["master_key", "database_url"],
  });
  const retained = readSection(
    reading,
    ["general_settings", "retention"],
    retention,
  );
  return {
    models,
    guardrails: readGuardrails(reading, models),
    router: router ?? {},
    proxy: proxy ?? {},
    cache: cache ?? {},
    tracing: tracing ?? {},
    callWebhook: callWebhook ?? {},
    general: general ?? {},
    retained: retained ?? {},
    pricesFile: findPricesFile(reading, general?.prices_file, projectRoot),
    port,
  };
}

/** LiteLLM's `environment_variables` section sets variables for references in the same files. */
function withFileVariables(tree: Mapping, read: ReadVariable): ReadVariable {
  const section = child(tree, "environment_variables");
  if (section === null) {
    return read;
  }
  const values = plain(resolveMapping(section, read)) as Record<
    string,
    unknown
  >;
  return (name) =>
    Object.hasOwn(values, name) ? String(values[name]) : read(name);
}

/** As for `database_url` and `master_key` themselves: a variable that is set must take effect. */
function rejectContradictions(
  reading: Reading,
  readEnvironment: ReadVariable,
): void {
  const section = child(reading.root, "environment_variables");
  if (section === null) {
    return;
  }
  const values = plain(section) as Record<string, unknown>;
  for (const variable of [
    "DATABASE_URL",
    "DATABASE_DIRECT_URL",
    "PROXY_MASTER_KEY",
  ]) {
    const given = readEnvironment(variable);
    if (
      given !== null &&
      Object.hasOwn(values, variable) &&
      String(values[variable]) !== given
    ) {
      reading.problems.push(
        contradictsVariable(
          reading,
          ["environment_variables", variable],
          variable,
        ),
      );
    }
  }
}

function warnAboutSections(reading: Reading): void {
  for (const key of reading.root.entries.keys()) {
    if (!SECTIONS.some((section) => section === key)) {
      reading.warnings.push(unusedSetting(reading, [key], SECTIONS));
    }
  }
}

/** `prices_file` is relative to the file that names it. */
function findPricesFile(
  reading: Reading,
  written: string | undefined,
  projectRoot: string,
): string | null {
  if (written === undefined) {
    return null;
  }
  const path = ["general_settings", "prices_file"];
  const { at } = locate(reading.root, path);
  const file = resolve(projectRoot, dirname(at.file), written);
  if (!existsSync(file)) {
    reading.problems.push(
      problemAt(
        reading,
        path,
        `${file} not found; correct the path, or omit it to use the built-in prices`,
      ),
    );
  }
  return file;
}
