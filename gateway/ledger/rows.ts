import { dayOf, LIFETIME, windowAt, type Window } from "./budget-windows.ts";
import { entitiesOf } from "./payers.ts";
import type { CostLine } from "../pricing/cost.ts";
import type { Intent, Outcome } from "./records.ts";

/** One row of `spend_log`, with its columns' names; times as ISO text. */
export interface SpendRow {
  readonly request_id: string;
  readonly started_at: string;
  readonly ended_at: string;
  readonly completion_started_at: string | null;
  readonly day: string;
  readonly call_type: string;
  readonly status: "success" | "failure" | "interrupted";
  readonly payer: string | null;
  readonly api_key: string | null;
  readonly user_id: string | null;
  readonly user_pays: boolean;
  readonly team_id: string | null;
  readonly organization_id: string | null;
  readonly end_user: string | null;
  readonly tags: readonly string[] | null;
  readonly model_group: string | null;
  readonly model_id: string | null;
  readonly model: string | null;
  readonly provider: string | null;
  /** As text if the sum was computed in SQL, exactly. */
  readonly spend: number | string;
  readonly saved: number;
  readonly unpriced: boolean;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cached_tokens: number;
  readonly cache_write_tokens: number;
  readonly cache_hit: boolean;
  readonly cache_key: string | null;
  readonly response_id: string | null;
  readonly session_id: string | null;
  readonly requester_ip: string | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** What `spend` is the sum of; missing or null where that is not recorded. */
  readonly cost_lines?: readonly CostLine[] | null;
  /** Ms of waiting for providers. */
  readonly waited_ms?: number | null;
}

/** The ledger's row of a call. One that was recovered without an outcome was interrupted: it pays its counted input. */
export function spendRow(
  intent: Intent,
  end: Outcome | { readonly recoveredAt: number },
  timeZone: string,
): SpendRow {
  const outcome = "recoveredAt" in end ? null : end;
  const endedAt =
    "recoveredAt" in end
      ? Math.max(end.recoveredAt, intent.startedAt)
      : end.endedAt;
  return {
    request_id: intent.id,
    started_at: iso(intent.startedAt),
    ended_at: iso(endedAt),
    completion_started_at:
      outcome?.firstTokenAt == null ? null : iso(outcome.firstTokenAt),
    day: dayOf(endedAt, timeZone),
    call_type: intent.callType,
    status: outcome?.status ?? "interrupted",
    payer: null,
    api_key: intent.apiKey,
    user_id: intent.userId,
    user_pays: intent.userPays ?? true,
    team_id: intent.teamId,
    organization_id: intent.organizationId,
    end_user: intent.endUser,
    tags: intent.tags.length === 0 ? null : intent.tags,
    model_group: intent.alias,
    model_id: outcome?.modelId ?? intent.modelId,
    model: outcome?.model ?? intent.model,
    provider: outcome?.provider ?? intent.provider,
    spend: outcome?.spend ?? intent.inputCost,
    saved: outcome?.saved ?? 0,
    unpriced: outcome?.unpriced ?? false,
    prompt_tokens: outcome?.promptTokens ?? intent.inputTokens,
    completion_tokens: outcome?.completionTokens ?? 0,
    cached_tokens: outcome?.cachedTokens ?? 0,
    cache_write_tokens: outcome?.cacheWriteTokens ?? 0,
    cache_hit: outcome?.cacheHit ?? false,
    cache_key: outcome?.cacheKey ?? null,
    response_id: outcome?.responseId ?? null,
    session_id: intent.sessionId,
    requester_ip: intent.requesterIp,
    metadata: outcome?.metadata ?? null,
    cost_lines: outcome?.costLines ?? null,
    waited_ms: outcome?.waitedMs ?? null,
  };
}

/** Names of all payers that a row counts for. */
export function entitiesOfRow(row: SpendRow): readonly string[] {
  if (row.payer !== null) {
    return [row.payer];
  }
  return entitiesOf({
    apiKey: row.api_key,
    userId: row.user_id,
    userPays: row.user_pays,
    teamId: row.team_id,
    organizationId: row.organization_id,
    endUser: row.end_user,
    tags: row.tags ?? [],
    alias: row.model_group ?? "",
  });
}

/**
 * Rows that count for the same payers and ended in the same second: no window begins or ends inside one. Most rows of a
 * batch are of a few such groups.
 */
interface RowGroup {
  readonly entities: readonly string[];
  /** Ms since the epoch. */
  readonly second: number;
  readonly rows: readonly SpendRow[];
}

export function groupsOf(rows: readonly SpendRow[]): readonly RowGroup[] {
  const groups = new Map<string, RowGroup & { readonly rows: SpendRow[] }>();
  for (const row of rows) {
    const second = Math.floor(Date.parse(row.ended_at) / 1_000) * 1_000;
    const name = JSON.stringify([
      second,
      row.payer,
      row.api_key,
      row.user_id,
      row.user_pays,
      row.team_id,
      row.organization_id,
      row.end_user,
      row.tags,
      row.model_group,
    ]);
    const known = groups.get(name);
    if (known === undefined) {
      groups.set(name, { entities: entitiesOfRow(row), second, rows: [row] });
    } else {
      known.rows.push(row);
    }
  }
  return [...groups.values()];
}

/** The windows of budgets that rows fall into, each once. */
export function windowsOf(
  groups: readonly RowGroup[],
  durations: ReadonlyMap<string, string | null>,
  timeZone: string,
): readonly EntityWindow[] {
  const windows = new Map<string, EntityWindow>();
  for (const { entities, second } of groups) {
    for (const entity of entities) {
      const duration = durations.get(entity) ?? null;
      if (duration === null) {
        continue;
      }
      const window = windowAt(duration, second, timeZone);
      if (window !== LIFETIME) {
        windows.set(`${entity}|${window.name}`, { entity, window });
      }
    }
  }
  return [...windows.values()];
}

export interface EntityWindow {
  readonly entity: string;
  readonly window: Window;
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
