import { z } from "zod";
import { query, transaction, type Client } from "../database/pool.ts";
import {
  deleteRows,
  insertRow,
  updateRows,
  type Row,
} from "../database/rows.ts";
import { CallError } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import {
  holdCredential,
  openValues,
  sealValues,
} from "../routing/credentials.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { audit, type AuditEntry } from "./audit.ts";
import {
  maskedValues,
  maskedValuesOf,
  newValues,
  requireValidModels,
  valuesOfModel,
  type CredentialRow,
} from "./credential-values.ts";
import { out } from "./kinds/out.ts";
import { name, names, object } from "./kinds/values.ts";
import { rejectUnlessStored } from "./model-rows.ts";
import { unknownModel } from "./model-views.ts";
import { counted } from "../../core/words.ts";

const labels = {
  display_name: name.nullish(),
  credential_info: object.nullish(),
} as const;

const outcome = z.object({ success: z.literal(true), message: out.text });

const shown = z
  .object({
    credential_name: out.text,
    display_name: out.text.nullable(),
    credential_info: out.anything,
    /** Names of the values; the values themselves are never shown. */
    credential_values: z.record(out.text, out.text),
    source: z.literal("db"),
  })
  .meta({ id: "Credential" });

const createCredential = adminRoute(
  "POST /credentials",
  {
    summary:
      "Store a credential of a provider for models to name as `litellm_credential_name`; with `model_id` that of a stored model. Its values are encrypted and never shown.",
    input: z.object({
      ...labels,
      credential_name: name,
      credential_values: object.nullish(),
      model_id: name.nullish(),
    }),
    answer: outcome,
  },
  async (admin, given) => {
    rejectUnlessStored(admin);
    const { credential_name: named, model_id: modelId } = given;
    await transaction(admin.pool, async (client) => {
      const values = {
        ...(modelId == null ? {} : await valuesOfModel(admin, client, modelId)),
        ...newValues(given.credential_values ?? {}),
      };
      if (Object.keys(values).length === 0) {
        throw new CallError(
          "invalid_request",
          '`credential_values` is required: an object such as {"api_key": "…"}.',
          { param: "credential_values" },
        );
      }
      const row = await insertRow(
        client,
        "credentials",
        {
          credential_name: named,
          display_name: given.display_name,
          credential_info: given.credential_info ?? {},
          sealed: sealValues(values, admin.gateway.config.general, named),
          created_by: admin.actor.name,
          updated_by: admin.actor.name,
        },
        "ON CONFLICT DO NOTHING",
      );
      if (row === null) {
        throw new CallError(
          "already_exists",
          `Credential '${named}' already exists. Update it with PATCH /credentials/${encodeURIComponent(named)}, or delete it first.`,
          { param: "credential_name" },
        );
      }
      await auditCredential(admin, client, {
        action: "created",
        before: null,
        after: row,
      });
    });
    await admin.gateway.reloadModels();
    return { success: true, message: "Credential created successfully" };
  },
);

const updateCredential = adminRoute(
  "PATCH /credentials/:credential_name",
  {
    summary:
      "Change values of a credential; the others stay. The models that name it use the new ones at once.",
    input: z.object({
      ...labels,
      credential_name: name,
      credential_values: object.nullish(),
      credential_values_to_delete: names.nullish(),
      model_id: name.nullish(),
    }),
    answer: outcome,
  },
  async (admin, given) => {
    rejectUnlessStored(admin);
    const { credential_name: named, model_id: modelId } = given;
    const { general } = admin.gateway.config;
    await transaction(admin.pool, async (client) => {
      const before = await lockCredential(client, named);
      const removed = new Set(given.credential_values_to_delete ?? []);
      const opened = openValues(before, general);
      const stored = opened?.values ?? {};
      const changed = {
        ...(modelId == null ? {} : await valuesOfModel(admin, client, modelId)),
        ...newValues(given.credential_values ?? {}, stored),
      };
      const kept = Object.entries(stored).filter(
        ([param]) => !removed.has(param),
      );
      const values = { ...Object.fromEntries(kept), ...changed };
      // Values that cannot be read now may be readable with another key later.
      const isUnread = opened === null && Object.keys(changed).length === 0;
      if (!isUnread) {
        await requireValidModels(admin, client, named, values);
      }
      const [after = null] = await updateRows(
        client,
        "credentials",
        { credential_name: named },
        {
          display_name: given.display_name,
          credential_info: {
            ...before.credential_info,
            ...given.credential_info,
          },
          sealed: isUnread ? undefined : sealValues(values, general, named),
          updated_by: admin.actor.name,
        },
      );
      await auditCredential(admin, client, {
        action: "updated",
        before,
        after,
      });
    });
    await admin.gateway.reloadModels();
    return { success: true, message: "Credential updated successfully" };
  },
);

const deleteCredential = adminRoute(
  "DELETE /credentials/:credential_name",
  {
    summary: "Delete a credential. Rejected while models name it.",
    input: z.object({ credential_name: name }),
    answer: outcome,
  },
  async (admin, { credential_name: named }) => {
    rejectUnlessStored(admin);
    await transaction(admin.pool, async (client) => {
      const before = await lockCredential(client, named);
      const models = await query<{ model_name: string }>(
        client,
        "SELECT model_name FROM models WHERE params ->> 'litellm_credential_name' = $1 ORDER BY model_name",
        [named],
      );
      if (models.length > 0) {
        const users = models.map(({ model_name: model }) => model).join(", ");
        throw new CallError(
          "invalid_request",
          `The credential ${named} is in use by ${counted(models.length, "model")} (${users}): change or reset their \`litellm_credential_name\` first.`,
          { param: "credential_name" },
        );
      }
      await deleteRows(client, "credentials", { credential_name: named });
      await auditCredential(admin, client, {
        action: "deleted",
        before,
        after: null,
      });
    });
    await admin.gateway.reloadModels();
    return { success: true, message: "Credential deleted successfully" };
  },
);

const listCredentials = adminRoute(
  "GET /credentials",
  {
    summary: "List the credentials with the names of their values.",
    input: z.object({}),
    answer: z.object({
      success: z.literal(true),
      credentials: z.array(shown),
    }),
  },
  async (admin) => {
    const rows = await query<CredentialRow>(
      admin.pool,
      "SELECT * FROM credentials ORDER BY created_at, credential_name",
    );
    return {
      success: true,
      credentials: rows.map((row) => describe(admin, row)),
    };
  },
);

const showCredential = adminRoute(
  "GET /credentials/by_name/:credential_name",
  {
    summary: "Get a credential with the names of its values.",
    input: z.object({ credential_name: name }),
    answer: shown,
  },
  async (admin, { credential_name: named }) => {
    const [row] = await query<CredentialRow>(
      admin.pool,
      "SELECT * FROM credentials WHERE credential_name = $1",
      [named],
    );
    if (row === undefined) {
      throw unknownCredential(named);
    }
    return describe(admin, row);
  },
);

const showCredentialOfModel = adminRoute(
  "GET /credentials/by_model/:model_id",
  {
    summary: "Get the names of the values with which a model is called.",
    input: z.object({ model_id: name }),
    answer: z.object({
      credential_name: out.text,
      credential_values: z.record(out.text, out.text),
      credential_info: out.anything,
    }),
  },
  async ({ gateway }, { model_id: modelId }) => {
    const deployment = gateway.catalog.deployments.find(
      ({ id }) => id === modelId,
    );
    if (deployment === undefined) {
      throw unknownModel(modelId, "model_id");
    }
    return {
      credential_name: `${deployment.alias}-credential-${modelId}`,
      credential_values: maskedValuesOf(deployment),
      credential_info: {},
    };
  },
);

function unknownCredential(named: string): CallError {
  return new CallError(
    "unknown_object",
    `Credential ${named} not found. GET /credentials lists the credentials.`,
    { param: "credential_name" },
  );
}

async function lockCredential(
  client: Client,
  named: string,
): Promise<CredentialRow> {
  const row = await holdCredential<CredentialRow>(client, named, "FOR UPDATE");
  if (row === undefined) {
    throw unknownCredential(named);
  }
  return row;
}

function describe(
  { gateway }: Admin,
  row: CredentialRow,
): z.output<typeof shown> {
  const opened = openValues(row, gateway.config.general);
  return {
    credential_name: row.credential_name,
    display_name: row.display_name,
    credential_info: row.credential_info,
    credential_values: maskedValues(opened?.values ?? {}),
    source: "db",
  };
}

/** Adds an entry to the audit log, without the values. */
async function auditCredential(
  { actor }: Admin,
  client: Client,
  { action, before, after }: Pick<AuditEntry, "action" | "before" | "after">,
): Promise<void> {
  const open = (row: Row | null) => {
    const { sealed: _, ...rest } = row ?? {};
    return row === null ? null : rest;
  };
  await audit(client, actor.name, {
    action,
    objectType: "credential",
    objectId: String((after ?? before)?.["credential_name"]),
    before: open(before),
    after: open(after),
  });
}

export const CREDENTIALS: readonly Route[] = [
  createCredential,
  listCredentials,
  showCredential,
  showCredentialOfModel,
  updateCredential,
  deleteCredential,
];
