import { z } from "zod";
import {
  choice,
  flagField,
  givenMoment,
  givenText,
  inputOf,
  json,
  list,
  optionalDollars,
  optionalMoment,
  optionalText,
  requestOnly,
  SORTABLE_AND_SEARCHABLE,
  STAMPS,
} from "./field.ts";
import { IN_FORCE, rowOf, type Kind } from "./kind.ts";
import { LIMITS, modelBudgetsShown } from "./limits.ts";
import { out } from "./out.ts";
import {
  duration,
  flag,
  modelBudgets,
  modelRates,
  models,
  moment,
  name,
  names,
  object,
  texts,
} from "./values.ts";

const KEY_TYPES = ["llm_api", "management", "read_only", "default"] as const;

const KEY_FIELDS = {
  token: givenText(),
  key_name: givenText(SORTABLE_AND_SEARCHABLE),
  key_alias: optionalText(name, SORTABLE_AND_SEARCHABLE),
  user_id: optionalText(name, SORTABLE_AND_SEARCHABLE),
  team_id: optionalText(name, SORTABLE_AND_SEARCHABLE),
  organization_id: optionalText(name),
  models: list(models),
  ...LIMITS,
  temp_budget_increase: optionalDollars(z.number().min(0)),
  temp_budget_expiry: optionalMoment(moment),
  model_max_budget: json(modelBudgets, modelBudgetsShown),
  model_rpm_limit: json(modelRates, z.record(out.text, out.count)),
  model_tpm_limit: json(modelRates, z.record(out.text, out.count)),
  tags: list(names),
  aliases: json(texts, z.record(out.text, out.text)),
  permissions: json(object),
  allowed_routes: list(z.array(name)),
  key_type: choice(z.enum(KEY_TYPES), "default"),
  metadata: json(object),
  blocked: flagField(flag),
  /** From now; sets `expires`. */
  duration: requestOnly(duration),
  expires: { ...givenMoment(), sortable: true },
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
  fields: KEY_FIELDS,
};

/** What every route that writes keys takes. */
export const keyFields = inputOf(KEY_FIELDS);

/** A key that the caller chose. */
export const chosenKey = z
  .string()
  .startsWith("sk-", "a key must begin with `sk-`")
  .min(20, "a key must have at least 20 characters")
  .max(256, "a key may have at most 256 characters")
  .regex(
    /^[\x21-\x7e]+$/,
    "a key may only have characters of ASCII, no spaces",
  );

export type KeyFields = z.output<z.ZodObject<typeof keyFields>>;

/** Whether calls with a key are answered, and why not. */
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
    last_used_at: out.moment.nullable(),
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
