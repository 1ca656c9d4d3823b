import { nearest } from "../../core/nearest.ts";
import { invalidField } from "../calls/validate.ts";
import { providerParams } from "../config/schema.ts";
import { refersToVariable } from "../config/stored.ts";
import type { Deployment } from "../config/types.ts";
import { query, type Client } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { CallError, invalidParam } from "../http/errors.ts";
import {
  CREDENTIAL_PARAMS,
  type CredentialValues,
} from "../routing/credentials.ts";
import {
  openParams,
  rowOfModel,
  type ModelRow,
} from "../routing/stored-models.ts";
import type { Admin } from "./admin-route.ts";
import { unknownModel } from "./model-views.ts";

/** A credential's row in the database. */
export interface CredentialRow extends Row {
  readonly credential_name: string;
  readonly display_name: string | null;
  readonly credential_info: Readonly<Record<string, unknown>>;
  readonly sealed: string;
}

/** Shown instead of each value. Clients send it back for values that they do not change. */
const MASK = "*****";

const NAMES: readonly string[] = CREDENTIAL_PARAMS;
const schema = providerParams
  .pick({
    api_key: true,
    api_base: true,
    base_url: true,
    api_version: true,
    organization: true,
    headers: true,
    extra_headers: true,
  })
  .partial();

/** The values that a request sets, without empty ones and those that a client sends back masked; throws 400 for unusable ones. */
export function newValues(
  given: Readonly<Record<string, unknown>>,
  stored: CredentialValues = {},
): CredentialValues {
  const values = Object.fromEntries(
    Object.entries(given).filter(
      ([param, value]) =>
        value != null &&
        value !== "" &&
        !(value === MASK && stored[param] !== undefined),
    ),
  );
  for (const [param, value] of Object.entries(values)) {
    rejectUnusable(param, value);
  }
  const read = schema.safeParse(values);
  if (!read.success) {
    throw invalidField(read.error);
  }
  return values;
}

function rejectUnusable(param: string, value: unknown): void {
  const at = `credential_values.${param}`;
  const reject = (why: string) => {
    throw invalidParam(at, why);
  };
  if (!NAMES.includes(param)) {
    const near = nearest(param, NAMES);
    reject(
      near === undefined
        ? `is not supported: a credential may have ${NAMES.join(", ")}.`
        : `is not supported (did you mean \`${near}\`?).`,
    );
  }
  if (value === MASK) {
    reject("is masked: send the value itself.");
  }
  if (param === "api_key") {
    requireSendable(value, at);
  }
  if (refersToVariable(value)) {
    reject(
      "must not refer to a variable, which only the configuration file may: send the value itself.",
    );
  }
}

/** Throws 400 for a key that cannot be the value of a header: https://httpwg.org/specs/rfc9110.html#fields.values */
export function requireSendable(key: unknown, param: string): void {
  if (typeof key === "string" && !/^[\t\x20-\x7e\x80-\xff]*$/.test(key)) {
    throw invalidParam(
      param,
      `has a character that no key has, such as "…" or the end of a line: copy the whole key again.`,
    );
  }
}

export function maskedValues(
  values: CredentialValues,
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.keys(values).map((param) => [param, MASK]));
}

/** The names of the values with which a deployment is called. */
export function maskedValuesOf({
  apiKey,
  apiVersion,
  headers,
}: Deployment): Readonly<Record<string, string>> {
  return maskedValues({
    ...(apiKey === null ? {} : { api_key: true }),
    api_base: true,
    ...(apiVersion === null ? {} : { api_version: true }),
    ...(Object.keys(headers).length === 0 ? {} : { headers: true }),
  });
}

/** The values that a stored model has itself; throws 400 for a model of the configuration file, 404 for an unknown one. */
export async function valuesOfModel(
  { gateway }: Admin,
  client: Client,
  modelId: string,
): Promise<CredentialValues> {
  if (gateway.config.models.some(({ id }) => id === modelId)) {
    throw new CallError(
      "invalid_request",
      `Model ${modelId} is defined in the configuration file: send its values in \`credential_values\`.`,
      { param: "model_id" },
    );
  }
  // Without a lock: a change of a model locks the model first, then its credential.
  const [row] = await query<ModelRow & Row>(
    client,
    "SELECT * FROM models WHERE model_id = $1",
    [modelId],
  );
  if (row === undefined) {
    throw unknownModel(modelId, "model_id");
  }
  const opened = openParams(row, gateway.config.general);
  return newValues(
    Object.fromEntries(
      Object.entries(opened?.params ?? {}).filter(([param]) =>
        NAMES.includes(param),
      ),
    ),
  );
}

/** Throws 400 if a model that names a credential would be invalid with these values. */
export async function requireValidModels(
  { gateway }: Admin,
  client: Client,
  credentialName: string,
  values: CredentialValues,
): Promise<void> {
  const { general } = gateway.config;
  const models = await query<ModelRow & Row>(
    client,
    "SELECT * FROM models WHERE params ->> 'litellm_credential_name' = $1 ORDER BY model_name",
    [credentialName],
  );
  for (const model of models) {
    const { model_id: id, model_name: modelName, info } = model;
    const params = openParams(model, general)?.params ?? model.params;
    const read = rowOfModel(
      { id, name: modelName, params, info },
      general,
      gateway.env,
      values,
    );
    if (!read.ok) {
      const why = read.problems.map(({ message }) => message).join("; ");
      throw new CallError(
        "invalid_request",
        `Model ${modelName}, which uses this credential, would be invalid: ${why}.`,
        { param: "credential_values" },
      );
    }
  }
}
