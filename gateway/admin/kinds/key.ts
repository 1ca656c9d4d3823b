import { z } from "zod";
import { FAULT_OF_ROUTES, isRouteOrGroup } from "../../access/key-routes.ts";
import {
  inputOf,
  readOnly,
  settable,
  SORTABLE,
  SORTABLE_AND_SEARCHABLE,
  STAMPS,
  textWithDefault,
} from "./field.ts";
import { IN_FORCE, rowOf, type Kind } from "./kind.ts";
import { LIMITS, modelBudgetsShown } from "./limits.ts";
import { out } from "./out.ts";
import {
  dollars,
  flag,
  lifetime,
  modelBudgets,
  modelRates,
  models,
  moment,
  name,
  reference,
  names,
  object,
  texts,
} from "./values.ts";

const KEY_TYPES = ["llm_api", "management", "read_only", "default"] as const;

/** LiteLLM has further groups (`openai_routes`): without a check such a key could make no call. */
const routes = z.array(name.refine(isRouteOrGroup, FAULT_OF_ROUTES));

const KEY_FIELDS = {
  token: readOnly("id"),
  key_name: readOnly("id", SORTABLE_AND_SEARCHABLE),
  key_alias: settable("text", reference, SORTABLE_AND_SEARCHABLE),
  user_id: settable("text", reference, SORTABLE_AND_SEARCHABLE),
  team_id: settable("text", reference, SORTABLE_AND_SEARCHABLE),
  organization_id: settable("text", reference),
  models: settable("list", models),
  access_group_ids: settable("list", names),
  ...LIMITS,
  temp_budget_increase: settable("dollars", dollars),
  temp_budget_expiry: settable("moment", moment),
  model_max_budget: settable("json", modelBudgets, {
    output: modelBudgetsShown,
  }),
  model_rpm_limit: settable("json", modelRates, {
    output: z.record(out.text, out.count),
  }),
  model_tpm_limit: settable("json", modelRates, {
    output: z.record(out.text, out.count),
  }),
  tags: settable("list", names),
  guardrails: settable("list", names),
  /** Also where `store_prompts_in_spend_logs` is off. */
  store_prompts: settable("flag", flag),
  aliases: settable("json", texts, { output: z.record(out.text, out.text) }),
  permissions: settable("json", object),
  allowed_routes: settable("list", routes),
  key_type: settable("text", z.enum(KEY_TYPES), textWithDefault("default")),
  metadata: settable("json", object),
  blocked: settable("flag", flag),
  /** From now; sets `expires`. */
  duration: { input: lifetime },
  expires: readOnly("moment", SORTABLE),
  /** Of a key without a secret, which counts the calls of a trusted issuer's tokens. */
  jwt_issuer: readOnly("text"),
  jwt_subject: readOnly("text"),
  jwt_issued_at: readOnly("moment"),
  ...STAMPS,
  updated_at: { ...STAMPS.updated_at, sortable: true },
} as const;

export const KEY: Kind = {
  table: "keys",
  noun: "key",
  id: ["token"],
  field: "key",
  createdBy: "POST /key/generate",
  entity: "key",
  showsBudgetTable: true,
  fields: KEY_FIELDS,
};

/** What every route that writes keys takes. */
export const keyFields = inputOf(KEY_FIELDS);

/** A key that the caller chose. */
export const chosenKey = z
  .string()
  .startsWith("sk-", "must start with `sk-`")
  .min(20, "must have at least 20 characters")
  .max(256, "must have at most 256 characters")
  .regex(
    /^[\x21-\x7e]+$/,
    "must only have printable ASCII characters, without spaces",
  );

export type KeyFields = z.output<z.ZodObject<typeof keyFields>>;

/** Whether calls with a key are answered, and why not. */
/** LiteLLM's: a blocked key is revoked, and one over its budget is active. */
export const KEY_STATUSES = [
  "active",
  "expired",
  "revoked",
  "deleted",
] as const;

export const KEY_STATES = [
  "active",
  "blocked",
  "expired",
  "over_budget",
] as const;

export const keyRow = z.object(rowOf(KEY)).meta({ id: "Key" });

/** `key` is what the request named: the key or its hash. */
export const updatedKeyRow = z.object({ ...rowOf(KEY), key: out.text });

export const usedKeyRow = z
  .object({
    ...rowOf(KEY),
    ...IN_FORCE,
    state: z.enum(KEY_STATES),
    status: z.enum(KEY_STATUSES),
    last_used_at: out.moment.nullable(),
    /** The same, under LiteLLM's name. */
    last_active: out.moment.nullable(),
    user_email: out.text.nullable(),
    user_alias: out.text.nullable(),
    team_alias: out.text.nullable(),
  })
  .meta({ id: "KeyInUse" });

/** The only answers in which a key itself is shown. */
export const newKeyRow = z
  .object({ ...rowOf(KEY), key: out.text, token_id: out.text })
  .meta({ id: "NewKey" });

export const deletedKeyRow = z
  .object({
    ...rowOf(KEY),
    deleted_at: out.moment,
    deleted_by: out.text.nullable(),
  })
  .meta({ id: "DeletedKey" });
