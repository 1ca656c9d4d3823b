import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { requireMaster, authenticate } from "../access/authenticate.ts";
import { hashKey, keyName, newKey } from "../access/keys.ts";
import { expiresAt } from "../accounting/windows.ts";
import { transaction } from "../db/pool.ts";
import { insertRow, type Row } from "../db/rows.ts";
import type { Gateway } from "../gateway.ts";
import { actorOf, audit } from "./audit.ts";
import { readBody } from "./body.ts";
import {
  duration,
  limits,
  modelBudgets,
  modelRates,
  models,
  name,
  object,
} from "./fields.ts";
import { keyRow } from "./rows.ts";

const generateBody = z.object({
  ...limits,
  key: z
    .string()
    .startsWith("sk-", "a key must begin with `sk-`")
    .min(20, "a key must have at least 20 characters")
    .nullish(),
  key_alias: name.nullish(),
  user_id: name.nullish(),
  team_id: name.nullish(),
  organization_id: name.nullish(),
  models: models.nullish(),
  duration: duration.nullish(),
  metadata: object.nullish(),
  aliases: z.record(z.string(), z.string()).nullish(),
  permissions: object.nullish(),
  model_max_budget: modelBudgets.nullish(),
  model_rpm_limit: modelRates.nullish(),
  model_tpm_limit: modelRates.nullish(),
  tags: z.array(name).nullish(),
  blocked: z.boolean().nullish(),
  allowed_routes: z.array(z.string()).nullish(),
  key_type: z.enum(["llm_api", "management", "read_only", "default"]).nullish(),
  temp_budget_increase: z.number().min(0).nullish(),
  temp_budget_expiry: z.iso.datetime({ offset: true }).nullish(),
  send_invite_email: z.boolean().nullish(),
});

/** POST /key/generate: a new virtual key; the answer is the only place where it is ever shown. */
export async function generateKey(
  gateway: Gateway,
  request: FastifyRequest,
): Promise<Row> {
  const caller = await authenticate(gateway, request.headers);
  requireMaster(caller, "make keys");
  const actor = actorOf(caller, request);
  const {
    key: chosen,
    duration: life,
    send_invite_email: _,
    ...fields
  } = readBody(generateBody, request);
  const key = chosen ?? newKey();
  const token = hashKey(key);
  const row = await transaction(gateway.pool, async (client) => {
    if (fields.user_id != null)
      await insertRow(
        client,
        "users",
        { user_id: fields.user_id },
        "ON CONFLICT DO NOTHING",
      );
    const stored = await insertRow(client, "keys", {
      ...withoutNulls(fields),
      token,
      key_name: keyName(key),
      expires: life == null ? undefined : expiryOf(life),
      created_by: actor,
      updated_by: actor,
    });
    await audit(client, actor, "created", "key", token, null, stored);
    return stored ?? {};
  });
  return { ...(await keyRow(gateway, row)), key, token_id: token };
}

/** A column keeps its default where a field is null. */
function withoutNulls(fields: Row): Row {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value != null),
  );
}

function expiryOf(life: string): Date | undefined {
  const at = expiresAt(life, Date.now());
  return at === null ? undefined : new Date(at);
}
