import type { z } from "zod";
import { unknownName } from "../../core/config/problem.ts";
import {
  problemAt,
  type Path,
  type Reading,
} from "../../core/config/reading.ts";
import { firstUnset } from "../../core/config/references.ts";
import { locate } from "../../core/config/tree.ts";
import { withoutTrailingSlashes } from "../../core/trailing-slashes.ts";
import {
  guardrailEntry,
  moderationGuardrail,
  patternsGuardrail,
  secretsGuardrail,
  serviceGuardrail,
} from "./guardrail-schema.ts";
import { readPatterns } from "./guardrail-patterns.ts";
import { itemPaths, readStrictly, valueAt } from "./guardrail-reading.ts";
import { secret } from "./secret.ts";
import type {
  Deployment,
  GuardrailCheck,
  GuardrailConfig,
  GuardrailMode,
} from "./types.ts";

const MODES: readonly GuardrailMode[] = [
  "pre_call",
  "during_call",
  "post_call",
];
/** Characters. A private key has about 3,300. */
const WINDOWS: Readonly<Record<GuardrailCheck["kind"], number>> = {
  patterns: 200,
  secrets: 4_000,
  moderation: 1_000,
  service: 1_000,
};
const SERVICE_PATH = "/beta/litellm_basic_guardrail_api";
const SERVICE_TIMEOUT_MS = 10_000;

/** The kinds of guardrails by their names in `guardrail`, LiteLLM's and shorter ones. */
const KINDS = {
  litellm_content_filter: readPatternsCheck,
  content_filter: readPatternsCheck,
  "hide-secrets": readSecretsCheck,
  openai_moderation: readModerationCheck,
  generic_guardrail_api: readServiceCheck,
} as const satisfies Record<string, CheckReader>;

type CheckReader = (reading: Reading, path: Path) => Read | null;

/** A kind's parameters, and those that all kinds have. */
interface Read {
  readonly check: GuardrailCheck;
  readonly common: Pick<
    z.output<typeof secretsGuardrail>,
    "default_on" | "unreachable_fallback" | "stream_window"
  >;
}

/**
 * The guardrails of the section `guardrails`, and of `litellm_settings.guardrails`. What is invalid or would not be run becomes
 * a problem, never a warning: a call that should be checked must not pass unchecked.
 */
export function readGuardrails(
  reading: Reading,
  models: readonly Deployment[],
): readonly GuardrailConfig[] {
  const found = [["guardrails"], ["proxy_settings", "guardrails"]].flatMap(
    (path) =>
      itemPaths(reading, path).flatMap((item): readonly Found[] => {
        const config = readGuardrail(reading, item);
        return config === null ? [] : [{ path: item, config }];
      }),
  );
  rejectRepeatedNames(reading, found);
  rejectUnknownModels(reading, models, found);
  rejectUnknownGuardrails(reading, models, found);
  return found.map(({ config }) => config);
}

interface Found {
  readonly path: Path;
  readonly config: GuardrailConfig;
}

function readGuardrail(reading: Reading, path: Path): GuardrailConfig | null {
  const entry = readStrictly(reading, path, guardrailEntry);
  const params = [...path, "litellm_params"];
  const kind = valueAt(reading, [...params, "guardrail"]);
  if (typeof kind !== "string" || !Object.hasOwn(KINDS, kind)) {
    reading.problems.push(
      problemAt(
        reading,
        [...params, "guardrail"],
        kind === undefined
          ? `is required and must be one of ${Object.keys(KINDS).join(", ")}`
          : `${unknownName("guardrail", String(kind), Object.keys(KINDS))}; connect other services as generic_guardrail_api`,
      ),
    );
    return null;
  }
  const read = KINDS[kind as keyof typeof KINDS](reading, params);
  const modes = readModes(reading, [...params, "mode"]);
  if (entry === null || read === null || modes === null) {
    return null;
  }
  const { check, common } = read;
  rejectLateMask(reading, [...params, "mode"], modes, check);
  return {
    name: entry.guardrail_name,
    modes,
    defaultOn: common.default_on ?? false,
    failOpen: common.unreachable_fallback === "fail_open",
    streamWindow: common.stream_window ?? WINDOWS[check.kind],
    check,
    info: entry.guardrail_info ?? null,
  };
}

function readModes(
  reading: Reading,
  path: Path,
): readonly GuardrailMode[] | null {
  const value = valueAt(reading, path);
  const modes = [value].flat();
  if (
    modes.length > 0 &&
    modes.every((mode) => MODES.some((known) => known === mode))
  ) {
    return MODES.filter((mode) => modes.includes(mode));
  }
  reading.problems.push(
    problemAt(
      reading,
      path,
      `${value === undefined ? "is required and " : ""}must be one of ${MODES.join(", ")}, or a list of these`,
    ),
  );
  return null;
}

/** During a call the prompt has already been sent: it can only be blocked. */
function rejectLateMask(
  reading: Reading,
  path: Path,
  modes: readonly GuardrailMode[],
  check: GuardrailCheck,
): void {
  const masks =
    check.kind === "patterns"
      ? check.patterns.some(({ action }) => action === "mask")
      : check.kind === "secrets" && check.action === "mask";
  if (masks && modes.includes("during_call")) {
    reading.problems.push(
      problemAt(
        reading,
        path,
        "during_call cannot mask a prompt that is already being answered: use pre_call for prompts, post_call for answers (streams too), or the action BLOCK",
      ),
    );
  }
}

function readPatternsCheck(reading: Reading, path: Path): Read | null {
  const common = readStrictly(reading, path, patternsGuardrail);
  if (common === null) {
    return null;
  }
  const patterns = readPatterns(reading, path, common);
  return { common, check: { kind: "patterns", patterns } };
}

function readSecretsCheck(reading: Reading, path: Path): Read | null {
  const common = readStrictly(reading, path, secretsGuardrail);
  if (common === null) {
    return null;
  }
  const action = common.action === "BLOCK" ? "block" : "mask";
  return { common, check: { kind: "secrets", action } };
}

function readModerationCheck(reading: Reading, path: Path): Read | null {
  const common = readStrictly(reading, path, moderationGuardrail);
  return (
    common && { common, check: { kind: "moderation", model: common.model } }
  );
}

function readServiceCheck(reading: Reading, path: Path): Read | null {
  const common = readStrictly(reading, path, serviceGuardrail);
  const node = locate(reading.root, path).node;
  const unset = node === null ? null : firstUnset(node);
  if (unset !== null) {
    reading.problems.push(
      problemAt(
        reading,
        path,
        `${unset} is not set: set it, or remove this guardrail`,
      ),
    );
    return null;
  }
  if (common === null) {
    return null;
  }
  const { api_base: base, api_key: key } = common;
  if (base === undefined) {
    reading.problems.push(
      problemAt(
        reading,
        path,
        "api_base is required: the address of the guardrail's service",
      ),
    );
    return null;
  }
  const trimmed = withoutTrailingSlashes(base);
  const headers = Object.entries(common.headers ?? {}).map(
    ([name, value]) => [name.toLowerCase(), secret(String(value))] as const,
  );
  return {
    common,
    check: {
      kind: "service",
      url: trimmed.endsWith(SERVICE_PATH) ? trimmed : trimmed + SERVICE_PATH,
      headers: Object.fromEntries([
        ...(key === undefined ? [] : [["x-api-key", secret(key)] as const]),
        ...headers,
      ]),
      params: common.additional_provider_specific_params ?? {},
      timeoutMs: common.timeout ?? SERVICE_TIMEOUT_MS,
    },
  };
}

function rejectRepeatedNames(reading: Reading, found: readonly Found[]): void {
  const names = found.map(({ config }) => config.name);
  for (const [at, { path, config }] of found.entries()) {
    if (names.indexOf(config.name) < at) {
      reading.problems.push(
        problemAt(
          reading,
          [...path, "guardrail_name"],
          "already exists; names of guardrails must be unique",
        ),
      );
    }
  }
}

/** The model of a moderation is an alias of this file, so that a misspelt one does not reject each call. */
function rejectUnknownModels(
  reading: Reading,
  models: readonly Deployment[],
  found: readonly Found[],
): void {
  const aliases = models.map(({ alias }) => alias);
  for (const { path, config } of found) {
    const { check } = config;
    if (check.kind === "moderation" && !aliases.includes(check.model)) {
      reading.problems.push(
        problemAt(
          reading,
          [...path, "litellm_params", "model"],
          `${unknownName("model", check.model, aliases)}; it must be a model_name of model_list with mode: moderation`,
        ),
      );
    }
  }
}

/** Aliases name existing guardrails. */
function rejectUnknownGuardrails(
  reading: Reading,
  models: readonly Deployment[],
  found: readonly Found[],
): void {
  const names = found.map(({ config }) => config.name);
  for (const { alias, guardrails } of models) {
    const missing = guardrails.find((name) => !names.includes(name));
    if (missing !== undefined) {
      reading.problems.push(
        problemAt(
          reading,
          ["model_list"],
          `${alias}: ${unknownName("guardrail", missing, names)}`,
        ),
      );
    }
  }
}
