import { hideAddresses } from "../../calls/hide-addresses.ts";
import type { Attempt } from "../../calls/attempt.ts";
import { query } from "../../database/pool.ts";
import type { Row } from "../../database/rows.ts";
import type { Admin } from "../admin-route.ts";
import { auditPromptViews } from "../audit.ts";
import type { Conditions } from "../paging.ts";
import { KEY_NOW, RENAMED } from "./former-keys.ts";
import { withTexts } from "./prompt-views.ts";

/** Which rows of the ledger are read, and in which order. The texts come from code, never from input. */
interface LogSelection {
  /** On the table `spend_log l`. */
  readonly filter: Conditions;
  /** `ORDER BY`. */
  readonly order: string;
  readonly limit: number;
  readonly offset: number;
}

/** Rows of the ledger as admin routes show them, without prompts; `metadata` as far as the caller may see it. */
export function readLog(
  admin: Admin,
  selection: LogSelection,
): Promise<readonly Row[]> {
  return readRows(admin, selection, "", "");
}

/** The same with the prompts and answers that are stored; the audit log records the views. */
export async function readLogWithPrompts(
  admin: Admin,
  selection: LogSelection,
): Promise<readonly Row[]> {
  const rows = await readRows(
    admin,
    selection,
    ", p.request AS messages, p.response",
    "LEFT JOIN prompts p ON p.request_id = l.request_id",
  );
  await auditPromptViews(
    admin.pool,
    admin.actor.name,
    rows.flatMap(({ messages, request_id: id }) =>
      messages === null ? [] : [String(id)],
    ),
  );
  return rows.map(withTexts);
}

/** The one row that the filter leaves, with what the page of a call shows besides; null: there is none. */
export async function readCall(
  admin: Admin,
  filter: Conditions,
): Promise<Row | null> {
  const [row = null] = await readRows(
    admin,
    { filter, order: "l.started_at DESC", limit: 1, offset: 0 },
    `, l.waited_ms, trim_scale(l.spend)::text AS exact_spend, EXISTS (SELECT FROM prompts p WHERE p.request_id = l.request_id) AS prompt_is_stored,
      (SELECT coalesce(u.user_alias, u.user_email) FROM users u WHERE u.user_id = l.user_id) AS user_alias,
      (SELECT t.team_alias FROM teams t WHERE t.team_id = l.team_id) AS team_alias`,
    "",
  );
  return row;
}

async function readRows(
  admin: Admin,
  { filter, order, limit, offset }: LogSelection,
  columns: string,
  join: string,
): Promise<readonly Row[]> {
  // The page is selected before names are joined to it.
  const rows = await query<Row>(
    admin.pool,
    `SELECT l.request_id, l.call_type, l.api_key, l.spend, l.prompt_tokens + l.completion_tokens AS total_tokens,
        l.prompt_tokens, l.completion_tokens, l.started_at AS "startTime", l.ended_at AS "endTime",
        l.completion_started_at AS "completionStartTime", ${DURATION_MS}::int8 AS request_duration_ms, l.model, l.model_id, l.model_group,
        l.provider AS custom_llm_provider, ${admin.reachesAll ? "d.api_base" : "NULL AS api_base"}, l.user_id AS "user", l.team_id, l.organization_id, l.end_user,
        coalesce(l.tags, '{}') AS request_tags, CASE WHEN l.cache_hit THEN 'True' ELSE 'False' END AS cache_hit,
        l.cache_key, l.session_id, l.status, l.requester_ip AS requester_ip_address, l.response_id, l.payer, l.saved,
        l.cached_tokens, l.cache_write_tokens, l.unpriced,
        jsonb_build_object('user_api_key', l.api_key, 'user_api_key_alias', k.key_alias, 'user_api_key_user_id', l.user_id,
          'user_api_key_team_id', l.team_id, 'user_api_key_org_id', l.organization_id, 'status', l.status,
          'error_information', NULL) || coalesce(l.metadata, '{}') AS metadata${columns}
      FROM (
        SELECT * FROM spend_log l ${filter.where()} ORDER BY ${order} LIMIT ${limit} OFFSET ${offset}) l
      LEFT JOIN deployments d ON d.model_id = l.model_id
      ${RENAMED} LEFT JOIN keys k ON k.token = ${KEY_NOW}
      ${join}
      ORDER BY ${order}`,
    filter.values,
  );
  return admin.reachesAll
    ? rows
    : rows.map((row) => ({
        ...row,
        metadata: withoutAddresses(admin, row["metadata"] as Metadata),
      }));
}

/** How long a call took, in ms. */
export const DURATION_MS =
  "(extract(epoch FROM l.ended_at - l.started_at) * 1000)";

interface Metadata extends Row {
  readonly error_information: { readonly error_message?: string } | null;
  readonly attempts?: readonly Attempt[];
}

/** Errors as the caller got them; internal addresses in the rows are for operators only. */
function withoutAddresses({ gateway }: Admin, metadata: Metadata): Metadata {
  const { error_information: error, attempts } = metadata;
  const hide = (text: string) => hideAddresses(gateway.catalog, text);
  return {
    ...metadata,
    error_information:
      error?.error_message === undefined
        ? error
        : { ...error, error_message: hide(error.error_message) },
    ...(attempts === undefined
      ? {}
      : {
          attempts: attempts.map((attempt) => ({
            ...attempt,
            error: hide(attempt.error),
          })),
        }),
  };
}
