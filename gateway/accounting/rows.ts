import { dayOf, LIFETIME, windowAt, type Window } from "./windows.ts";
import { entitiesOf } from "./payers.ts";
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
  readonly team_id: string | null;
  readonly organization_id: string | null;
  readonly end_user: string | null;
  readonly tags: readonly string[] | null;
  readonly model_group: string | null;
  readonly model_id: string | null;
  readonly model: string | null;
  readonly provider: string | null;
  /** As text where the sum was made in SQL, exactly. */
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
  };
}

/** What one row adds to one payer's totals. The sums are made in SQL, where money is exact. */
export interface Charge {
  readonly entity: string;
  /** The second in which the call ended: no window begins or ends inside one. */
  readonly at: string;
  readonly spend: number | string;
}

/** Names of everyone that a row counts for. */
export function entitiesOfRow(row: SpendRow): readonly string[] {
  if (row.payer !== null) return [row.payer];
  return entitiesOf({
    apiKey: row.api_key,
    userId: row.user_id,
    teamId: row.team_id,
    organizationId: row.organization_id,
    endUser: row.end_user,
    tags: row.tags ?? [],
    alias: row.model_group ?? "",
  });
}

/** What rows add to everyone that they count for. */
export function chargesOf(rows: readonly SpendRow[]): readonly Charge[] {
  return rows.flatMap((row) => {
    const at = iso(Math.floor(Date.parse(row.ended_at) / 1_000) * 1_000);
    return entitiesOfRow(row).map((entity) => ({
      entity,
      at,
      spend: row.spend,
    }));
  });
}

/** The windows of budgets that rows fall into, each once. */
export function windowsOf(
  rows: readonly SpendRow[],
  durations: ReadonlyMap<string, string | null>,
  timeZone: string,
): readonly EntityWindow[] {
  const windows = new Map<string, EntityWindow>();
  for (const row of rows) {
    const endedAt = Date.parse(row.ended_at);
    for (const entity of entitiesOfRow(row)) {
      const duration = durations.get(entity) ?? null;
      if (duration === null) continue;
      const window = windowAt(duration, endedAt, timeZone);
      if (window !== LIFETIME)
        windows.set(`${entity}|${window.name}`, { entity, window });
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
