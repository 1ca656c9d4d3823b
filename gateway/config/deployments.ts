import { hash } from "node:crypto";
import type { ConfigProblem } from "../../core/config/problem.ts";
import { pricesIn, type OwnPrices } from "../pricing/price-fields.ts";
import { firstUnset, type ReadVariable } from "../../core/config/references.ts";
import {
  CALL_DEFAULT_NAMES,
  modelEntry,
  modelInfo,
  providerParams,
  type ModelInfo,
  type ProviderParams,
} from "./schema.ts";
import { isRecord } from "../../core/json.ts";
import { secret, type Secret } from "./secret.ts";
import {
  misspelledSetting,
  problemAt,
  type Path,
  type Reading,
} from "../../core/config/reading.ts";
import { readSection, unusedSetting } from "./sections.ts";
import {
  addressVariable,
  findAddress,
  findKey,
  readTarget,
  type Target,
} from "./target.ts";
import { isEmpty, locate } from "../../core/config/tree.ts";
import { readRunner } from "./runner.ts";
import type { Deployment } from "./types.ts";

/** The deployments of `model_list`, in the order written; invalid entries become problems. */
export function readDeployments(
  reading: Reading,
  read: ReadVariable,
): readonly Deployment[] {
  const list = reading.root.entries.get("model_list")?.node;
  if (list === undefined || (list.kind === "scalar" && list.value === null)) {
    return [];
  }
  if (list.kind !== "list") {
    reading.problems.push(
      problemAt(
        reading,
        ["model_list"],
        "must be a list; start each model with - model_name:",
      ),
    );
    return [];
  }
  const deployments: Deployment[] = [];
  const taken = new Map<string, number>();
  for (const index of list.items.keys()) {
    const deployment = readDeployment(reading, ["model_list", index], read);
    if (deployment === null) {
      continue;
    }
    warnOfCredential(reading, ["model_list", index]);
    deployments.push({
      ...deployment,
      id: ownId(reading, ["model_list", index], deployment.id, taken),
    });
  }
  return deployments;
}

/** The credentials of the database are for the models of the database: a start must not wait for it. */
function warnOfCredential(reading: Reading, path: Path): void {
  const at = [...path, "provider_params", "litellm_credential_name"];
  const { node } = locate(reading.root, at);
  if (node !== null && !isEmpty(node)) {
    reading.warnings.push(
      problemAt(
        reading,
        at,
        "is only for models added with POST /model/new: set api_key here, for example to os.environ/OPENAI_API_KEY",
      ),
    );
  }
}

/** Two entries that differ only in their key have the same hash: the later one gets a number. */
function ownId(
  reading: Reading,
  path: Path,
  id: string,
  taken: Map<string, number>,
): string {
  const before = taken.get(id) ?? 0;
  taken.set(id, before + 1);
  if (before === 0) {
    return id;
  }
  const given = [...path, "model_info", "id"];
  if (locate(reading.root, given).node !== null) {
    reading.problems.push(
      problemAt(reading, given, "already exists; ids must be unique"),
    );
  }
  return `${id}-${before + 1}`;
}

/** One entry; null when it is invalid (with a problem) or not supported (with a warning). */
export function readDeployment(
  reading: Reading,
  path: Path,
  read: ReadVariable,
): Deployment | null {
  const paramsPath = [...path, "provider_params"];
  const entry = readSection(reading, path, modelEntry);
  const ignored: ConfigProblem[] = [];
  const params = readSection(
    { ...reading, warnings: ignored },
    paramsPath,
    providerParams,
    { quiet: "all" },
  );
  const info = readSection(reading, [...path, "model_info"], modelInfo);
  if (entry === null || params === null || info === null) {
    return null;
  }

  const connection = readConnection(reading, paramsPath, params, read);
  if (connection === null) {
    return null;
  }
  // Of a model that is skipped, only that is said.
  reading.warnings.push(...ignored, ...infoWarnings(reading, path, info));
  const { providerName, known, model } = connection;
  return {
    id:
      info.id ??
      stableId(reading, paramsPath, entry.model_name, providerName, model),
    alias: aliasOf(entry.model_name, info),
    teamId: info.team_id ?? null,
    provider: known.family,
    providerName,
    model,
    apiBase: connection.apiBase,
    publicOnly: info.public_address_only ?? false,
    apiKey: connection.apiKey,
    apiVersion:
      known.family === "azure"
        ? (params.api_version ?? read("AZURE_API_VERSION") ?? "2024-10-21")
        : null,
    pending: connection.pending,
    blocked: false,
    ...routingOf(params),
    ...timeoutsOf(params),
    guardrails: params.guardrails ?? [],
    headers: readHeaders(params),
    defaults: readDefaults(reading, paramsPath, params, known.family),
    dropParams: params.drop_params ?? null,
    droppedParams: params.additional_drop_params ?? [],
    cacheMarks: marksCache(reading, paramsPath, params, known.family),
    local: params.local ?? info.local ?? null,
    runner: readRunner(reading, paramsPath, params, known.family),
    clientParams: params.configurable_clientside_auth_params ?? [],
    prices: readPrices(reading, path, params, info),
    mode: info.mode ?? connection.mode ?? usualMode(model),
    baseModel: info.base_model ?? null,
    info: freeFields(info),
  };
}

function usualMode(model: string): string {
  return /embed/i.test(model) ? "embedding" : "chat";
}

function routingOf(params: ProviderParams) {
  return {
    rpm: params.rpm ?? null,
    tpm: params.tpm ?? null,
    weight: params.weight ?? 1,
    maxRetries: params.max_retries ?? params.num_retries ?? null,
    tags: params.tags ?? [],
    tagRegex: params.tag_regex ?? [],
  };
}

function timeoutsOf(params: ProviderParams) {
  return {
    timeoutMs: params.timeout ?? null,
    streamTimeoutMs: params.stream_timeout ?? null,
    idleTimeoutMs:
      params.idle_timeout === undefined ? null : (params.idle_timeout ?? 0),
    hedgeAfterMs: params.hedge_after ?? null,
  };
}

function marksCache(
  reading: Reading,
  paramsPath: Path,
  { cache }: ProviderParams,
  family: Deployment["provider"],
): boolean {
  if (cache !== undefined && family !== "anthropic") {
    const path = [...paramsPath, "cache"];
    const message =
      "has no effect: other providers than Anthropic cache prompts without marks";
    reading.warnings.push(problemAt(reading, path, message));
  }
  return cache === "auto" && family === "anthropic";
}

function readSafety(
  reading: Reading,
  paramsPath: Path,
  { safety_settings }: ProviderParams,
  family: Deployment["provider"],
): Readonly<Record<string, unknown>> {
  if (safety_settings === undefined) {
    return {};
  }
  if (family === "gemini") {
    return { safety_settings };
  }
  const path = [...paramsPath, "safety_settings"];
  const message = "has no effect: only Gemini has such settings";
  reading.warnings.push(problemAt(reading, path, message));
  return {};
}

/** LiteLLM stores a team's model under a generated name; the team calls it by its public name. */
function aliasOf(
  modelName: string,
  { team_id: teamId, team_public_model_name: publicName }: ModelInfo,
): string {
  return teamId === undefined ? modelName : (publicName ?? modelName);
}

interface Connection extends Target {
  readonly apiBase: string;
  readonly apiKey: Secret | null;
  /** The unset variable without which the deployment cannot be called. */
  readonly pending: string | null;
}

/** The provider, model, address and key; null when one of them is invalid or missing (a problem or warning says why). */
function readConnection(
  reading: Reading,
  paramsPath: Path,
  params: ProviderParams,
  read: ReadVariable,
): Connection | null {
  const target = readTarget(reading, paramsPath, params);
  if (target === null) {
    return null;
  }
  const { known, providerName } = target;
  const address = findAddress(
    known,
    params.api_base ?? params.base_url ?? null,
    addressVariable(reading, paramsPath),
    read,
  );
  if (address === null) {
    reading.problems.push(
      misspelledSetting(
        reading,
        [...paramsPath, "api_base"],
        Object.keys(providerParams.shape),
      ) ??
        problemAt(
          reading,
          paramsPath,
          `api_base is required: ${providerName} has no default address`,
        ),
    );
    return null;
  }
  const key = findKey(known, params.api_key ?? null, address.isDefault, read);
  const node = locate(reading.root, paramsPath).node;
  const unset = node === null ? null : firstUnset(node);
  return {
    ...target,
    apiBase: address.base,
    apiKey: key.key,
    pending: unset ?? address.pending ?? key.pending,
  };
}

/** Uses the address as written (`${LOCAL_RUNNER_A_URL}`), so that the id does not change with the value of a variable. */
function stableId(
  reading: Reading,
  paramsPath: Path,
  alias: string,
  provider: string,
  model: string,
): string {
  const base = ["api_base", "base_url"]
    .map((key) => locate(reading.root, [...paramsPath, key]).node)
    .find((node) => node?.kind === "scalar");
  const address = base?.kind === "scalar" ? String(base.written) : "";
  return hash(
    "sha256",
    JSON.stringify([alias, provider, model, address]),
  ).slice(0, 16);
}

function readHeaders(params: ProviderParams): Readonly<Record<string, Secret>> {
  const headers = { ...params.headers, ...params.extra_headers };
  const organization =
    params.organization === undefined
      ? []
      : [["openai-organization", secret(params.organization)] as const];
  return Object.fromEntries([
    ...organization,
    ...Object.entries(headers).map(
      ([name, value]) => [name.toLowerCase(), secret(String(value))] as const,
    ),
  ]);
}

function readDefaults(
  reading: Reading,
  paramsPath: Path,
  params: ProviderParams,
  family: Deployment["provider"],
): Readonly<Record<string, unknown>> {
  const { extra_body: extra = {} } = params;
  const defaults: Record<string, unknown> = Object.fromEntries(
    Object.entries(params).filter(
      ([key, value]) =>
        CALL_DEFAULT_NAMES.includes(key) &&
        value !== undefined &&
        params.additional_drop_params?.includes(key) !== true,
    ),
  );
  Object.assign(defaults, readSafety(reading, paramsPath, params, family));
  const { reasoning_effort: effort } = defaults;
  if (isRecord(effort)) {
    // LiteLLM takes it with a summary: `{"effort": "high", "summary": "auto"}`.
    defaults["reasoning_effort"] = effort["effort"];
  }
  // Gemini's endpoint has a field of this name: https://ai.google.dev/gemini-api/docs/openai
  return "google" in extra && family === "gemini"
    ? { ...defaults, extra_body: extra }
    : { ...defaults, ...extra };
}

/** null: none is set. */
function readPrices(
  reading: Reading,
  path: Path,
  params: ProviderParams,
  info: ModelInfo,
): OwnPrices | null {
  const entry = { ...info, ...params };
  const own = pricesIn(entry, (name, message) => {
    reading.problems.push(
      problemAt(reading, [...path, "model_info", name], message),
    );
  });
  const { rates, perRequest, perImage, perPiece, serviceTiers } = own;
  const isEmpty =
    perRequest === null &&
    perImage === null &&
    [rates, perPiece, serviceTiers].every(
      (each) => Object.keys(each).length === 0,
    );
  return isEmpty ? null : own;
}

function infoWarnings(
  reading: Reading,
  path: Path,
  info: ModelInfo,
): readonly ConfigProblem[] {
  const known = Object.keys(modelInfo.shape);
  return unusedInfo(info).map((name) =>
    unusedSetting(reading, [...path, "model_info", name], known),
  );
}

/** LiteLLM's limits of a model that have no effect here, with the value of each that limits nothing. */
const LIMITS_OF_LITELLM: Readonly<Record<string, unknown>> = {
  access_windows: null,
  blocked: false,
  discoverable: true,
  enable_tag_filtering: null,
  enforce_supported_endpoints: false,
  max_embedding_batch_size: null,
  team_model_rpm_limit: null,
  team_model_tpm_limit: null,
};

/**
 * Other fields of `model_info` are free. What is named like a price is one that was misspelled, or that has no effect here, like
 * LiteLLM's limits of a model.
 */
export function unusedInfo(
  info: Readonly<Record<string, unknown>>,
): readonly string[] {
  return Object.entries(info)
    .filter(
      ([name, value]) =>
        value != null &&
        value !== LIMITS_OF_LITELLM[name] &&
        !Object.hasOwn(modelInfo.shape, name) &&
        (/_cost_per_|_token_cost/.test(name) ||
          Object.hasOwn(LIMITS_OF_LITELLM, name)),
    )
    .map(([name]) => name);
}

function freeFields(info: ModelInfo): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(info).filter(
      ([key, value]) => key !== "id" && value !== undefined,
    ),
  );
}
