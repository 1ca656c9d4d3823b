import type { Logger } from "pino";
import {
  formatProblem,
  type ConfigProblem,
} from "../../core/config/problem.ts";
import { providerParams } from "../config/schema.ts";
import { open, seal, sealingKeys, type SealingKeys } from "../config/sealed.ts";
import { normalizeApiBase } from "../config/providers.ts";
import { secret } from "../config/secret.ts";
import { deploymentFromRow } from "../config/stored.ts";
import type { Deployment } from "../config/types.ts";
import { query, type Pool } from "../database/pool.ts";
import {
  credentialOf,
  loadCredentials,
  withCredential,
  type CredentialValues,
} from "./credentials.ts";

/** A model's row in the database. */
export interface ModelRow {
  readonly model_id: string;
  readonly model_name: string;
  /** `provider_params` without secret parameters. */
  readonly params: Readonly<Record<string, unknown>>;
  readonly sealed: string | null;
  readonly info: Readonly<Record<string, unknown>>;
}

/** The parameters that may contain secrets. */
export const SECRET_PARAMS = ["api_key", "headers", "extra_headers"] as const;

/** Models that admins added to those of the configuration. */
export interface StoredModels {
  /** As last read, without those that cannot be served, which are logged. */
  deployments(): readonly Deployment[];
  /** A configured deployment, with a stored key or address where it waits for one, and switched off if an admin did so. */
  withStored(deployment: Deployment): Deployment;
  /** Reads them again; throws {@link DatabaseUnavailable}. */
  load(): Promise<void>;
}

/** The context that a model's secrets are bound to. */
const placeOf = (modelId: string) => `models/${modelId}`;

/** Splits parameters into readable and sealed ones; null: none is secret. */
function sealParams(
  params: Readonly<Record<string, unknown>>,
  keys: SealingKeys,
  modelId: string,
): Pick<ModelRow, "params" | "sealed"> {
  const isSecret = ([name]: [string, unknown]) =>
    (SECRET_PARAMS as readonly string[]).includes(name);
  const all = Object.entries(params).filter(([, value]) => value != null);
  const secrets = all.filter(isSecret);
  const [key] = sealingKeys(keys);
  return {
    params: Object.fromEntries(all.filter((entry) => !isSecret(entry))),
    sealed:
      secrets.length === 0
        ? null
        : seal(
            JSON.stringify(Object.fromEntries(secrets)),
            key,
            placeOf(modelId),
          ),
  };
}

/** All parameters of a stored model; null: its secrets were sealed with an unknown key. */
export function openParams(
  { model_id: modelId, params, sealed }: ModelRow,
  keys: SealingKeys,
): {
  readonly params: Readonly<Record<string, unknown>>;
  /** Sealed with a previous key. */
  readonly outdated: boolean;
} | null {
  if (sealed === null) {
    return { params, outdated: false };
  }
  const opened = open(sealed, sealingKeys(keys), placeOf(modelId));
  if (opened === null) {
    return null;
  }
  return {
    params: {
      ...params,
      ...(JSON.parse(opened.text.reveal()) as Record<string, unknown>),
    },
    outdated: opened.by > 0,
  };
}

/** The row in the shape of `POST /model/new`, for {@link deploymentFromRow}. */
function storedModelOf(
  { model_id: id, model_name, info }: ModelRow,
  params: Readonly<Record<string, unknown>>,
) {
  return {
    model_name,
    provider_params: params,
    model_info: { ...info, id },
  };
}

/**
 * The row of a valid model, its secrets sealed, and the deployment it describes; otherwise the problems with it. Parameters that
 * mean nothing here are left out: {@link unusedParams} finds those that say something. `credential` has the values of the
 * credential that the parameters name.
 */
export function rowOfModel(
  wanted: {
    readonly id: string;
    readonly name: string;
    readonly params: Readonly<Record<string, unknown>>;
    readonly info: Readonly<Record<string, unknown>>;
  },
  keys: SealingKeys,
  env: Readonly<Record<string, string | undefined>>,
  credential: CredentialValues = {},
):
  | {
      readonly ok: true;
      readonly row: ModelRow;
      readonly deployment: Deployment;
    }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] } {
  const { id, name, info } = wanted;
  const params = Object.fromEntries(
    Object.entries(wanted.params).filter(
      ([param, value]) =>
        value != null && Object.hasOwn(providerParams.shape, param),
    ),
  );
  const row = { model_id: id, model_name: name, params, sealed: null, info };
  const read = deploymentFromRow(
    storedModelOf(row, withCredential(params, credential)),
    env,
  );
  return read.ok
    ? { ...read, row: { ...row, ...sealParams(params, keys, id) } }
    : read;
}

/** Names of parameters that have no meaning here, sorted, without those that say nothing: LiteLLM's own pages send them. */
export function unusedParams(
  params: Readonly<Record<string, unknown>>,
): readonly string[] {
  return Object.entries(params)
    .filter(
      ([param, value]) =>
        !Object.hasOwn(providerParams.shape, param) && !saysNothing(value),
    )
    .map(([param]) => param)
    .sort();
}

function saysNothing(value: unknown): boolean {
  return (
    value == null ||
    value === false ||
    value === "" ||
    (typeof value === "object" && Object.keys(value).length === 0)
  );
}

interface StoredModelsOptions {
  readonly pool: Pool;
  readonly keys: () => SealingKeys;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
}

export function createStoredModels(options: StoredModelsOptions): StoredModels {
  const { pool, keys, log } = options;
  let deployments: readonly Deployment[] = [];
  let credentials: ReadonlyMap<string, CredentialValues | null> = new Map();
  let blocked: ReadonlySet<string> = new Set();
  const withStored = (given: Deployment) => {
    const deployment = withStoredValue(given, credentials);
    return blocked.has(deployment.id)
      ? { ...deployment, blocked: true }
      : deployment;
  };
  const load = async () => {
    const rows = await query<ModelRow & Record<string, unknown>>(
      pool,
      "SELECT model_id, model_name, params, sealed, info FROM models ORDER BY created_at, model_id",
    );
    if (keys().saltKey === null && rows.some(({ sealed }) => sealed !== null)) {
      log.warn(
        "provider keys in the database are encrypted with the master key: set HEARTH_SALT_KEY to be able to change the master key",
      );
    }
    const loaded = await loadCredentials(pool, keys(), log);
    const ids = await query<{ model_id: string }>(
      pool,
      "SELECT model_id FROM blocked_models",
    );
    const read = await Promise.all(
      rows.map((row) => deploymentOf(options, row, loaded)),
    );
    credentials = loaded;
    blocked = new Set(ids.map(({ model_id: id }) => id));
    deployments = read
      .filter((deployment) => deployment !== null)
      .map(withStored);
  };
  return {
    deployments: () => deployments,
    withStored,
    load: oneAfterTheOther(load),
  };
}

/**
 * Runs `work` once at a time, as runs that overlap could end in another order than they began. Calls during a run share the next one: what they
 * are made for may be missing from what the current one has read.
 */
function oneAfterTheOther(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null;
  let next: Promise<void> | null = null;
  const run = (): Promise<void> => {
    running = work().finally(() => {
      running = null;
    });
    return running;
  };
  return () => {
    if (running === null) {
      return run();
    }
    next ??= running
      .catch(() => undefined)
      .then(() => {
        next = null;
        return run();
      });
    return next;
  };
}

/** A credential with the name of an unset variable supplies the key, or the address, of the deployments that wait for it. */
function withStoredValue(
  deployment: Deployment,
  credentials: ReadonlyMap<string, CredentialValues | null>,
): Deployment {
  const { pending } = deployment;
  const values = pending === null ? null : credentials.get(pending);
  if (values == null) {
    return deployment;
  }
  const { api_key: key, api_base: base } = values;
  switch (storableOf(deployment)) {
    case "address":
      return typeof base === "string"
        ? {
            ...deployment,
            apiBase: normalizeApiBase(deployment.provider, base),
            pending: null,
          }
        : deployment;
    case "key":
      return typeof key === "string"
        ? { ...deployment, apiKey: secret(key), pending: null }
        : deployment;
    case null:
      return deployment;
  }
}

/**
 * What a stored credential supplies to a deployment that waits for a variable; null: nothing. A deployment with a key or headers
 * gets no address: the right to store one must not allow sending the gateway's secrets to any server.
 */
export function storableOf({
  pending,
  apiBase,
  apiKey,
  provider,
  headers,
}: Deployment): "key" | "address" | null {
  if (pending === null || pending === "HEARTH_SALT_KEY") {
    return null;
  }
  if (apiBase !== "") {
    return "key";
  }
  const hasSecrets = apiKey !== null || Object.keys(headers).length > 0;
  return provider === "azure" || hasSecrets ? null : "address";
}

/** A model is listed as pending while the key that sealed it or its credential is missing. */
async function deploymentOf(
  { pool, keys, env, log }: StoredModelsOptions,
  row: ModelRow,
  credentials: ReadonlyMap<string, CredentialValues | null>,
): Promise<Deployment | null> {
  const opened = openParams(row, keys());
  if (opened?.outdated === true) {
    await sealAgain({ pool, keys, log }, row, opened.params);
  }
  const params = opened?.params ?? row.params;
  const credentialName = credentialOf(params);
  const credential =
    credentialName === null ? {} : credentials.get(credentialName);
  if (credential === undefined) {
    log.error(
      { model: row.model_id, credential: credentialName },
      "a stored model cannot be served: its credential does not exist",
    );
    return null;
  }
  const read = deploymentFromRow(
    storedModelOf(row, withCredential(params, credential ?? {})),
    env,
  );
  if (read.ok) {
    return opened === null || credential === null
      ? { ...read.deployment, pending: "HEARTH_SALT_KEY" }
      : read.deployment;
  }
  log.error(
    { model: row.model_id, problems: read.problems.map(formatProblem) },
    "a stored model cannot be served",
  );
  return null;
}

/** Seals with the current key, so that the previous one can be removed. */
async function sealAgain(
  { pool, keys, log }: Omit<StoredModelsOptions, "env">,
  row: ModelRow,
  params: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { sealed } = sealParams(params, keys(), row.model_id);
  await query(
    pool,
    "UPDATE models SET sealed = $2 WHERE model_id = $1 AND sealed = $3",
    [row.model_id, sealed, row.sealed],
  );
  log.info({ model: row.model_id }, "a provider key was re-encrypted");
}
