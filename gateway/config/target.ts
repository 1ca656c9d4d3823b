import { unknownName } from "../../core/config/problem.ts";
import { textOf } from "../../core/json.ts";
import {
  FOREIGN_PROVIDERS,
  guessProvider,
  normalizeApiBase,
  OTHER_PROVIDERS,
  PROVIDERS,
  type KnownProvider,
} from "./providers.ts";
import type { ReadVariable } from "../../core/config/references.ts";
import type { ProviderParams } from "./schema.ts";
import { secret, type Secret } from "./secret.ts";
import {
  problemAt,
  type Path,
  type Reading,
} from "../../core/config/reading.ts";
import { locate } from "../../core/config/tree.ts";

/** The provider and model of a deployment. */
export interface Target {
  readonly providerName: string;
  readonly known: KnownProvider;
  readonly model: string;
  /** What the id of the model says of its mode; null: nothing. */
  readonly mode: "responses" | null;
}

/** What LiteLLM takes before the ids of OpenAI's models to choose an API or parameters; it is not part of the id. */
const ROUTE = /^(responses|o_series|gpt5_series)\//;

/** Reads `provider_params.model`; null: invalid or not supported, with a problem or a warning. */
export function readTarget(
  reading: Reading,
  path: Path,
  params: ProviderParams,
): Target | null {
  const slash = params.model.indexOf("/");
  const prefix = slash > 0 ? params.model.slice(0, slash) : null;
  const rest = slash > 0 ? params.model.slice(slash + 1) : params.model;
  const given = params.custom_llm_provider ?? null;
  const named = given ?? prefix ?? guessProvider(params.model);
  const at = [...path, "model"];
  const model = given !== null && given !== prefix ? params.model : rest;
  if (named === null) {
    reading.problems.push(
      problemAt(reading, at, withoutProvider(params.model)),
    );
    return null;
  }
  const known = Object.hasOwn(PROVIDERS, named) ? PROVIDERS[named] : undefined;
  if (known !== undefined && model !== "") {
    const [route = "", name] =
      (named === "openai" || named === "azure" ? ROUTE.exec(model) : null) ??
      [];
    return {
      providerName: named === "ollama_chat" ? "ollama" : named,
      known,
      model: model.slice(route.length),
      mode: name === "responses" ? name : null,
    };
  }
  const hasAddress = (params.api_base ?? params.base_url) !== undefined;
  const skipped = reasonToSkip(named, hasAddress);
  if (skipped !== null) {
    reading.warnings.push(
      problemAt(reading, at, `provider "${named}" ${skipped}`),
    );
    return null;
  }
  // An unknown name with an address is an OpenAI-compatible server.
  if (model !== "" && hasAddress) {
    return {
      providerName: named,
      known: { family: "openai", apiBase: null, keyVariable: null },
      model,
      mode: null,
    };
  }
  const unknown = unknownName("provider", named, Object.keys(PROVIDERS));
  reading.problems.push(
    problemAt(
      reading,
      at,
      model === ""
        ? "must be <provider>/<model_id>; the model id is empty"
        : `${unknown}; for an OpenAI-compatible server, set api_base`,
    ),
  );
  return null;
}

/** Whether a model is of a provider that needs an adapter of its own, whose parameters do not exist here either. */
export function isForeign({
  model,
  custom_llm_provider: given,
}: Readonly<Record<string, unknown>>): boolean {
  const [prefix = ""] = textOf(model).split("/");
  return FOREIGN_PROVIDERS.has(textOf(given) || prefix);
}

/** Why a model of LiteLLM's provider has no effect; null: it is not such a provider, or has an address. */
function reasonToSkip(provider: string, hasAddress: boolean): string | null {
  if (provider.startsWith("bedrock")) {
    return "is not supported, the model is skipped; call it at Bedrock's endpoint for API keys (docs/litellm.md)";
  }
  if (FOREIGN_PROVIDERS.has(provider)) {
    return "is not supported, the model is skipped; use openrouter or another OpenAI-compatible server";
  }
  return OTHER_PROVIDERS.has(provider) && !hasAddress
    ? "has no address here, the model is skipped; set api_base to its OpenAI-compatible one"
    : null;
}

/** LiteLLM takes `*` for the models of all providers. */
function withoutProvider(model: string): string {
  return model === "*"
    ? "must name a provider: write an entry for each, such as openai/* and anthropic/*"
    : "must be <provider>/<model_id>, such as openai/gpt-5-mini or ollama/llama3.2";
}

interface Address {
  readonly base: string;
  /** Whether it is the provider's default, to which its key may be sent. */
  readonly isDefault: boolean;
  readonly pending: string | null;
}

/** The unset variable in the address. */
export function addressVariable(reading: Reading, path: Path): string | null {
  for (const key of ["api_base", "base_url"]) {
    const { node } = locate(reading.root, [...path, key]);
    if (node?.kind === "scalar" && node.unset !== null) {
      return node.unset;
    }
  }
  return null;
}

/** The address for calls; null: none is set and the provider has no default. */
export function findAddress(
  known: KnownProvider,
  written: string | null,
  unset: string | null,
  read: ReadVariable,
): Address | null {
  if (written !== null) {
    return {
      base: normalizeApiBase(known.family, written),
      isDefault: false,
      pending: null,
    };
  }
  if (unset !== null) {
    return { base: "", isDefault: false, pending: unset };
  }
  if (known.family === "azure") {
    const base = read("AZURE_API_BASE");
    return base === null || !URL.canParse(base)
      ? { base: "", isDefault: true, pending: "AZURE_API_BASE" }
      : {
          base: normalizeApiBase("azure", base),
          isDefault: true,
          pending: null,
        };
  }
  return known.apiBase === null
    ? null
    : { base: known.apiBase, isDefault: true, pending: null };
}

/** A provider's key variable is used only with the provider's default address: a key must not be sent to another server. */
export function findKey(
  known: KnownProvider,
  written: string | null,
  atOwnAddress: boolean,
  read: ReadVariable,
): { readonly key: Secret | null; readonly pending: string | null } {
  if (written !== null) {
    return { key: secret(written), pending: null };
  }
  if (known.keyVariable === null || !atOwnAddress) {
    return { key: null, pending: null };
  }
  const value = read(known.keyVariable);
  return value === null
    ? { key: null, pending: known.keyVariable }
    : { key: secret(value), pending: null };
}
