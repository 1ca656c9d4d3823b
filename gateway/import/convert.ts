import { parseJson, recordOf } from "../../core/json.ts";
import { hashKey, isKeyHash, keyName } from "../access/keys.ts";
import { FAULT_OF_ROUTES, isRouteOrGroup } from "../access/key-routes.ts";
import { isRole } from "../access/roles.ts";
import { PERMISSIONS } from "../admin/kinds/team.ts";
import { modelBudgets, modelRates } from "../admin/kinds/values.ts";
import type { Row } from "../database/rows.ts";
import {
  parseBudgetDuration,
  withoutWord,
} from "../ledger/budget-durations.ts";
import type { Notes } from "./import-notes.ts";

/** Converts rows of LiteLLM's tables to Hearth's. Pure, except that differences are noted. */

const MAX_BUDGET = 9_000_000;

/** LiteLLM's routes store them in the metadata of a key or team; their rows have a column for them, too. */
const NO_POLICIES = "policies are not supported";

/** Restrictions in LiteLLM's rows that Hearth does not support. */
const NOT_HERE: readonly (readonly [string, string])[] = [
  ["allowed_cache_controls", "`allowed_cache_controls` is not supported"],
  ["allowed_model_region", "`allowed_model_region` is not supported"],
  [
    "access_group_ids",
    "access groups are not imported: create them with POST /v1/access_group",
  ],
  ["budget_limits", "`budget_limits` is not supported: use `model_max_budget`"],
  [
    "object_permission_id",
    "permissions on MCP servers and vector stores are not supported",
  ],
  ["policies", NO_POLICIES],
  [
    "project_id",
    "projects are not imported: the project's models and limits no longer apply",
  ],
  ["agent_id", "agents are not imported: the agent's limits no longer apply"],
  ["budget_fallbacks", "`budget_fallbacks` is not supported"],
  [
    "temp_budget_increase",
    "temporary raises of team members are not imported: raise the tier's `max_budget` until they end",
  ],
  ["tpd_limit", "`tpd_limit` is not supported: use `tpm_limit` or a budget"],
  [
    "auto_rotate",
    "keys are not rotated on a schedule: rotate each with POST /key/regenerate",
  ],
  [
    "router_settings",
    "`router_settings` is not supported: the configuration file's apply to all calls",
  ],
  [
    "default_team_member_models",
    "`default_team_member_models` is not supported: set `allowed_models` with POST /team/member_update",
  ],
];

/** Guardrails are kept by name. */
export const GUARDRAILS_NOTE =
  "guardrails must be configured under the same names: until then its calls are rejected";

const NO_CALLBACKS =
  "callbacks are not imported: the configuration file's apply to all calls";

/** What LiteLLM stores of callbacks in metadata, with secrets that only its own routes redact. */
const CALLBACK_FIELDS: readonly string[] = ["logging", "callback_settings"];

/** The part of these in `metadata`. */
const NOT_HERE_IN_METADATA: readonly (readonly [string, string])[] = [
  ["guardrails", GUARDRAILS_NOTE],
  ["policies", NO_POLICIES],
  ["enforced_params", "`enforced_params` is not supported"],
  [
    "end_user_budget_id",
    "`end_user_budget_id` is not supported: set the tier on end users",
  ],
  [
    "tag_rpm_limit",
    "`tag_rpm_limit` is not supported: set `rpm_limit` on tags",
  ],
  ["model_itpm_limit", "`model_itpm_limit` is not supported: use `tpm_limit`"],
  ["model_otpm_limit", "`model_otpm_limit` is not supported: use `tpm_limit`"],
  ["require_trace_id", "`require_trace_id` is not supported"],
  [
    "max_iterations",
    "`max_iterations` is not supported: use `rpm_limit` or a budget",
  ],
  ...CALLBACK_FIELDS.map((field) => [field, NO_CALLBACKS] as const),
];

/** Limits of models that only keys have here; LiteLLM stores those of teams and users in their metadata. */
const LIMITS_OF_KEYS = [
  "model_max_budget",
  "model_rpm_limit",
  "model_tpm_limit",
] as const;

function noteLimitsOfKeys(
  kind: "team" | "user",
  name: string,
  row: Row,
  notes: Notes,
): void {
  const metadata = objectOf(row["metadata"]);
  for (const field of LIMITS_OF_KEYS) {
    if (!isEmpty(row[field] ?? metadata[field])) {
      notes.changed(
        `${kind}s`,
        name,
        `\`${field}\` of a ${kind} is not supported: set it on its keys`,
      );
    }
  }
}

function noteUnsupported(
  kind: string,
  name: string,
  row: Row,
  notes: Notes,
): void {
  const metadata = objectOf(row["metadata"]);
  for (const [from, list] of [
    [row, NOT_HERE],
    [metadata, NOT_HERE_IN_METADATA],
  ] as const) {
    for (const [field, text] of list) {
      if (!isEmpty(from[field])) {
        notes.changed(kind, name, text);
      }
    }
  }
}

export function isEmpty(value: unknown): boolean {
  if (value == null || value === "" || value === false) {
    return true;
  }
  return typeof value === "object" && Object.keys(value).length === 0;
}

/** JSON columns hold objects, and in older versions the text of one. */
export function objectOf(value: unknown): Row {
  return typeof value === "string"
    ? objectOf(parseJson(value))
    : recordOf(value);
}

function withoutCallbacks(metadata: Row): Row {
  return Object.fromEntries(
    Object.entries(metadata).filter(
      ([field]) => !CALLBACK_FIELDS.includes(field),
    ),
  );
}

export function listOf(value: unknown): readonly unknown[] {
  const list = typeof value === "string" ? parseJson(value) : value;
  return Array.isArray(list) ? list : [];
}

export function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

export function namesOf(value: unknown): readonly string[] {
  return listOf(value).filter((name) => typeof name === "string");
}

function dollarsOf(kind: string, name: string, value: unknown, notes: Notes) {
  const dollars = value === null || value === undefined ? null : Number(value);
  if (dollars === null || !Number.isFinite(dollars)) {
    return null;
  }
  if (dollars <= MAX_BUDGET) {
    return Math.max(0, dollars);
  }
  notes.changed(
    kind,
    name,
    `budgets above $ ${MAX_BUDGET} are reduced to that`,
  );
  return MAX_BUDGET;
}

function limitOf(value: unknown): number | null {
  const limit = value === null || value === undefined ? null : Number(value);
  return limit === null || !Number.isSafeInteger(limit) || limit < 0
    ? null
    : limit;
}

function limitsOf(kind: string, name: string, row: Row, notes: Notes): Row {
  const written = textOf(row["budget_duration"]);
  const duration = written === null ? null : withoutWord(written);
  const known = duration === null || parseBudgetDuration(duration).ok;
  if (!known) {
    notes.changed(
      kind,
      name,
      `unknown budget_duration "${duration}": the budget never resets`,
    );
  }
  return {
    max_budget: dollarsOf(kind, name, row["max_budget"], notes),
    soft_budget: dollarsOf(kind, name, row["soft_budget"], notes),
    budget_duration: known ? duration : null,
    tpm_limit: limitOf(row["tpm_limit"]),
    rpm_limit: limitOf(row["rpm_limit"]),
    max_parallel_requests: limitOf(row["max_parallel_requests"]),
  };
}

function modelBudgetsOf(
  kind: string,
  name: string,
  value: unknown,
  notes: Notes,
): Row {
  const given = objectOf(value);
  const read = modelBudgets.safeParse(
    Object.fromEntries(
      Object.entries(given).map(([model, budget]) => [
        model,
        plainBudget(budget),
      ]),
    ),
  );
  if (read.success) {
    return read.data;
  }
  notes.changed(kind, name, "`model_max_budget` is invalid and was left out");
  return {};
}

/** LiteLLM stores the limits of a model next to its budget, and numbers as texts. */
function plainBudget(budget: unknown): unknown {
  if (typeof budget !== "object" || budget === null) {
    return Number(budget);
  }
  const { budget_limit, max_budget, time_period, budget_duration } =
    budget as Row;
  return {
    budget_limit: Number(budget_limit ?? max_budget),
    time_period: time_period ?? budget_duration ?? null,
  };
}

export function budgetOf(row: Row, notes: Notes): Row {
  const name = String(row["budget_id"]);
  noteUnsupported("tiers", name, row, notes);
  return {
    budget_id: name,
    ...limitsOf("tiers", name, row, notes),
    model_max_budget: modelBudgetsOf(
      "tiers",
      name,
      row["model_max_budget"],
      notes,
    ),
  };
}

export function organizationOf(row: Row, notes: Notes): Row {
  const name = String(row["organization_id"]);
  noteUnsupported("organizations", name, row, notes);
  return {
    organization_id: name,
    organization_alias: textOf(row["organization_alias"]),
    models: namesOf(row["models"]),
    budget_id: textOf(row["budget_id"]),
    metadata: objectOf(row["metadata"]),
    created_at: row["created_at"],
  };
}

export function userOf(row: Row, notes: Notes): Row {
  const name = String(row["user_id"]);
  noteUnsupported("users", name, row, notes);
  const role = textOf(row["user_role"]) ?? "internal_user";
  const known = isRole(role) && role !== "org_admin";
  if (!known && role !== "org_admin") {
    notes.changed("users", name, `the role ${role} becomes internal_user`);
  }
  noteLimitsOfKeys("user", name, row, notes);
  const metadata = objectOf(row["metadata"]);
  return {
    user_id: name,
    user_alias: textOf(row["user_alias"]),
    user_email: textOf(row["user_email"]),
    user_role: known ? role : "internal_user",
    models: namesOf(row["models"]),
    // LiteLLM rejects the keys of users that SCIM deactivated, and stores this only here.
    blocked: metadata["scim_active"] === false,
    metadata,
    ...limitsOf("users", name, row, notes),
    created_at: row["created_at"] ?? undefined,
  };
}

export function teamOf(
  row: Row,
  aliases: Row,
  memberTier: Row,
  notes: Notes,
): Row {
  const name = String(row["team_id"]);
  noteUnsupported("teams", name, row, notes);
  noteLimitsOfKeys("team", name, row, notes);
  const permissions = namesOf(row["team_member_permissions"]);
  const kept = permissions.filter((route) => PERMISSIONS.includes(route));
  const metadata = withoutCallbacks(objectOf(row["metadata"]));
  const ofMembers = limitsOf("teams", name, memberTier, notes);
  return {
    team_id: name,
    team_alias: textOf(row["team_alias"]),
    organization_id: textOf(row["organization_id"]),
    models: namesOf(row["models"]),
    metadata,
    tags: namesOf(metadata["tags"]),
    blocked: row["blocked"] === true,
    model_aliases: aliases,
    team_member_permissions: kept,
    team_member_budget: ofMembers["max_budget"],
    team_member_budget_duration: ofMembers["budget_duration"],
    team_member_tpm_limit: ofMembers["tpm_limit"],
    team_member_rpm_limit: ofMembers["rpm_limit"],
    ...limitsOf("teams", name, row, notes),
    created_at: row["created_at"] ?? undefined,
  };
}

/** A key's row, or the reason why it cannot be imported. */
export function keyOf(
  row: Row,
  notes: Notes,
): { readonly row: Row } | { readonly why: string } {
  const stored = String(row["token"]);
  const token = stored.startsWith("sk-") ? hashKey(stored) : stored;
  if (!isKeyHash(token)) {
    return {
      why: "not stored as SHA-256, so no key can match it",
    };
  }
  if (row["team_id"] === "litellm-dashboard") {
    return { why: "a sign-in to LiteLLM's own pages, not a key" };
  }
  const shownName = textOf(row["key_name"]);
  const named = stored.startsWith("sk-")
    ? keyName(stored)
    : (shownName ?? `sk-...`);
  noteUnsupported("keys", named, row, notes);
  const routes = namesOf(row["allowed_routes"]);
  for (const route of routes.filter((one) => !isRouteOrGroup(one))) {
    notes.changed(
      "keys",
      named,
      `\`${route}\` allows nothing: \`allowed_routes\` ${FAULT_OF_ROUTES}`,
    );
  }
  const metadata = withoutCallbacks(objectOf(row["metadata"]));
  return {
    row: {
      token,
      key_name: named,
      key_alias: textOf(row["key_alias"])?.slice(0, 256) ?? null,
      user_id: textOf(row["user_id"]),
      team_id: textOf(row["team_id"]),
      organization_id: textOf(row["organization_id"]),
      budget_id: textOf(row["budget_id"]),
      models: namesOf(row["models"]),
      aliases: objectOf(row["aliases"]),
      permissions: objectOf(row["permissions"]),
      allowed_routes: routes,
      blocked: row["blocked"] === true,
      expires: row["expires"] ?? null,
      ...limitsOf("keys", named, row, notes),
      ...raiseOf(named, metadata, notes),
      model_max_budget: modelBudgetsOf(
        "keys",
        named,
        row["model_max_budget"],
        notes,
      ),
      tags: namesOf(metadata["tags"]),
      model_rpm_limit: ratesOf(metadata["model_rpm_limit"]),
      model_tpm_limit: ratesOf(metadata["model_tpm_limit"]),
      metadata,
      created_at: row["created_at"] ?? undefined,
    },
  };
}

/** A temporary raise of a key's budget, which LiteLLM keeps in its metadata; a time without a zone is one in UTC. */
function raiseOf(name: string, metadata: Row, notes: Notes): Row {
  const raise = dollarsOf(
    "keys",
    name,
    metadata["temp_budget_increase"],
    notes,
  );
  const until = textOf(metadata["temp_budget_expiry"]) ?? "";
  const hasZone = /(Z|[+-]\d\d:?\d\d)$/i.test(until);
  const expiry = new Date(hasZone ? until : `${until}Z`);
  return raise === null || Number.isNaN(expiry.getTime())
    ? {}
    : { temp_budget_increase: raise, temp_budget_expiry: expiry };
}

function ratesOf(value: unknown): Row {
  const read = modelRates.safeParse(objectOf(value));
  return read.success ? read.data : {};
}

export function endUserOf(row: Row, notes: Notes): Row {
  const name = String(row["user_id"]);
  noteUnsupported("end users", name, row, notes);
  if (!isEmpty(row["models"])) {
    notes.changed(
      "end users",
      name,
      "`models` of an end user is not supported: set it on keys, users or teams",
    );
  }
  return {
    user_id: name,
    alias: textOf(row["alias"]),
    blocked: row["blocked"] === true,
    budget_id: textOf(row["budget_id"]),
  };
}

export function tagOf(row: Row, notes: Notes): Row {
  const name = String(row["tag_name"]);
  if (!isEmpty(row["models"])) {
    notes.changed("tags", name, "`models` of a tag is not supported");
  }
  return {
    name,
    description: textOf(row["description"]),
    budget_id: textOf(row["budget_id"]),
  };
}
