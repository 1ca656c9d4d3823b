import { readDeployment } from "./deployments.ts";
import type { ConfigProblem } from "../../core/config/problem.ts";
import { PROVIDERS } from "./providers.ts";
import {
  hasReference,
  referencedVariable,
  variableReader,
} from "../../core/config/references.ts";
import { scalar, type Mapping, type Tree } from "../../core/config/tree.ts";
import type { Deployment } from "./types.ts";

/** A model as accepted by `POST /model/new` and stored in the database, in either dialect. */
interface StoredModel {
  readonly model_name: unknown;
  readonly provider_params?: unknown;
  readonly litellm_params?: unknown;
  readonly model_info?: unknown;
}

type StoredResult =
  | { readonly ok: true; readonly deployment: Deployment }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] };

/**
 * A deployment from a row instead of a file, by the same rules. References to variables are rejected, except for the
 * provider's key variable at the provider's default address: the right to add models must not allow sending the gateway's
 * environment to any address.
 */
export function deploymentFromRow(
  row: StoredModel,
  env: Readonly<Record<string, string | undefined>>,
): StoredResult {
  const problems: ConfigProblem[] = [];
  const warnings: ConfigProblem[] = [];
  const spelling =
    row.provider_params === undefined ? "litellm_params" : "provider_params";
  const grown = treeOf({
    model_name: row.model_name,
    provider_params: withoutOwnKeyReference(row[spelling]),
    model_info: row.model_info ?? {},
  });
  const params = grown.entries.get("provider_params");
  const root: Mapping =
    params === undefined
      ? grown
      : {
          ...grown,
          entries: new Map(grown.entries).set("provider_params", {
            ...params,
            spelling,
          }),
        };
  if (hasReference(root)) {
    problems.push({
      file: null,
      line: null,
      path: spelling,
      message:
        "must not refer to a variable, which only the configuration file may: use the value itself",
    });
  }
  const deployment = readDeployment(
    { root, problems, warnings },
    [],
    variableReader(env, problems),
  );
  if (deployment !== null && problems.length === 0) {
    return { ok: true, deployment };
  }
  return { ok: false, problems: problems.length > 0 ? problems : warnings };
}

/** Whether a value or anything in it refers to a variable. */
export function refersToVariable(value: unknown): boolean {
  return hasReference(grow(value));
}

function withoutOwnKeyReference(params: unknown): unknown {
  if (typeof params !== "object" || params === null) {
    return params;
  }
  const { api_key: key, ...rest } = params as Record<string, unknown>;
  const variable = referencedVariable(key);
  const own =
    variable !== null &&
    rest["api_base"] === undefined &&
    rest["base_url"] === undefined &&
    Object.values(PROVIDERS).some((known) => known.keyVariable === variable);
  return own ? rest : params;
}

const NOWHERE = { file: "", line: 0 };

function treeOf(value: Readonly<Record<string, unknown>>): Mapping {
  return {
    kind: "map",
    at: NOWHERE,
    entries: new Map(
      Object.entries(value)
        .filter(([, inner]) => inner !== undefined)
        .map(([key, inner]) => [
          key,
          { at: NOWHERE, spelling: key, node: grow(inner) },
        ]),
    ),
  };
}

function grow(value: unknown): Tree {
  if (Array.isArray(value)) {
    return { kind: "list", at: NOWHERE, items: value.map(grow) };
  }
  if (typeof value === "object" && value !== null) {
    return treeOf(value as Record<string, unknown>);
  }
  return scalar(
    typeof value === "string" ||
      typeof value === "number" ||
      typeof value === "boolean"
      ? value
      : null,
    NOWHERE,
  );
}
