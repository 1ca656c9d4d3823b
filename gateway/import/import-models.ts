import { auditModel } from "../admin/model-rows.ts";
import { unusedInfo } from "../config/deployments.ts";
import type { Secret } from "../config/secret.ts";
import type { GatewayConfig } from "../config/types.ts";
import { insertRow, type Row } from "../database/rows.ts";
import {
  rowOfModel,
  unusedParams,
  type ModelRow,
} from "../routing/stored-models.ts";
import { TEAM } from "../admin/kinds/team.ts";
import { GUARDRAILS_NOTE, listOf, textOf } from "./convert.ts";
import { ACTOR, idsOf, type ImportContext } from "./import-row.ts";
import { unseal } from "./unseal.ts";

/** Decides which models may be stored, and how their provider keys are re-encrypted. */
export interface ModelKeeping {
  readonly config: Pick<GatewayConfig, "general" | "models">;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** LiteLLM's salt key and master key, as far as they were given. */
  readonly litellmKeys: readonly Secret[];
}

type ModelImportContext = Omit<ImportContext, "before" | "spends">;

const ENCRYPTED =
  "encrypted: run the import again with LiteLLM's LITELLM_SALT_KEY in the environment (its LITELLM_MASTER_KEY if it had no salt key), or add the model and its provider key with POST /model/new";

/** Imports the models of LiteLLM's database, their provider keys encrypted with Hearth's own key. */
export async function importModels(
  context: ModelImportContext,
  keeping: ModelKeeping,
): Promise<void> {
  const { client, source, notes } = context;
  const credentials = new Map(
    (await source.rows("credentials")).map((row) => [
      row["credential_name"],
      row["credential_values"] as Row,
    ]),
  );
  const teams = await idsOf(client, TEAM);
  for (const given of await source.rows("models")) {
    const read = readModel(given, credentials, teams, keeping);
    if ("why" in read) {
      notes.left("models", nameOf(given), read.why);
    } else {
      await importModel(context, read, given["blocked"] === true);
    }
  }
}

interface Readable {
  readonly row: ModelRow;
  /** Parameters that were set and mean nothing here. */
  readonly dropped: readonly string[];
}

function readModel(
  given: Row,
  credentials: ReadonlyMap<unknown, Row>,
  teams: ReadonlySet<string>,
  { config, env, litellmKeys }: ModelKeeping,
): Readable | { readonly why: string } {
  const id = String(given["model_id"]);
  const {
    id: _,
    db_model: __,
    blocked: ___,
    ...info
  } = (given["model_info"] ?? {}) as Row;
  if (!config.general.storeModelInDb) {
    return {
      why: "models are kept in the configuration file only: general_settings.store_model_in_db is false",
    };
  }
  if (config.models.some((model) => model.id === id)) {
    return { why: "the configuration file has a model with the same id" };
  }
  const teamId = textOf(info["team_id"]);
  if (teamId !== null && !teams.has(teamId)) {
    return { why: "the team that it belonged to does not exist here" };
  }
  const own = unsealAll(given["litellm_params"] as Row, litellmKeys);
  const { litellm_credential_name: credentialName, ...params } = own ?? {};
  const shared = unsealAll(credentials.get(credentialName) ?? {}, litellmKeys);
  if (own === null || shared === null) {
    return { why: ENCRYPTED };
  }
  const read = rowOfModel(
    {
      id,
      name: nameOf(given),
      params: { ...params, ...shared },
      info,
    },
    config.general,
    env,
  );
  if (!read.ok) {
    return {
      why: read.problems
        .map(({ path, message }) => `${path} ${message}`)
        .join("; "),
    };
  }
  return {
    row: read.row,
    dropped: [...unusedParams(params), ...unusedInfo(info)],
  };
}

/** LiteLLM stores a team's model under a generated name; here its name is the one that the team calls. */
function nameOf({ model_name: name, model_info: info }: Row): string {
  return (
    textOf((info as Row | null)?.["team_public_model_name"]) ?? String(name)
  );
}

async function importModel(
  { client, notes }: ModelImportContext,
  { row, dropped }: Readable,
  blocked: boolean,
): Promise<void> {
  const made = await insertRow(
    client,
    "models",
    { ...row, created_by: ACTOR, updated_by: ACTOR },
    "ON CONFLICT DO NOTHING",
  );
  notes.count("models", made === null ? "known" : "brought");
  if (made === null) {
    return;
  }
  if (blocked) {
    await insertRow(
      client,
      "blocked_models",
      { model_id: row.model_id, blocked_by: ACTOR },
      "ON CONFLICT DO NOTHING",
    );
  }
  if (dropped.length > 0) {
    notes.changed(
      "models",
      row.model_name,
      `without ${dropped.join(", ")}: unsupported here`,
    );
  }
  if (listOf(row.params["guardrails"]).length > 0) {
    notes.changed("models", row.model_name, GUARDRAILS_NOTE);
  }
  await auditModel(client, ACTOR, {
    action: "created",
    before: null,
    after: { ...row, blocked },
  });
}

/** Parameters in clear; null where one of them cannot be read. */
function unsealAll(params: Row, keys: readonly Secret[]): Row | null {
  const opened = Object.entries(params).map(
    ([name, value]) =>
      [
        name,
        typeof value === "string" ? unseal(value, keys) : (value ?? undefined),
      ] as const,
  );
  return opened.some(([, value]) => value === null)
    ? null
    : Object.fromEntries(opened);
}
