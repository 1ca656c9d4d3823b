import type { LimitedEntity } from "../limits/limits.ts";
import { limitedEntities } from "../ledger/payers.ts";
import { nanosFromCost } from "../pricing/money.ts";
import { billOf, costOf, type Bill, type Usage } from "../pricing/prices.ts";
import type { Intent, Outcome } from "../ledger/records.ts";
import { inputUsage } from "../tokens/usage.ts";
import type { Gateway } from "../gateway.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import type { Call } from "./call.ts";

/** How a call ended, as the one who carried it out knows it. */
export interface Ending {
  readonly status: "success" | "failure";
  /** null: answered from the cache, or nobody was reached. */
  readonly deployment: PricedDeployment | null;
  /** null: nothing is to be paid. */
  readonly usage: Usage | null;
  readonly firstTokenAt: number | null;
  readonly responseId: string | null;
  readonly cached: { readonly saved: number; readonly usage: Usage } | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** Whether `usage` is what the provider may charge, without its word for it. */
  readonly estimated?: boolean;
  /** Ms in which the gateway had nothing to do but wait for others; null: not known. */
  readonly waitedMs: number | null;
}

/** What records and settles a call. */
export type RecordPorts = Pick<
  Gateway,
  | "config"
  | "database"
  | "journal"
  | "limits"
  | "metrics"
  | "pending"
  | "underWay"
>;

/** The first line of the journal, written before the call leaves. Throws `journal_full`. */
export async function journalIntent(
  gateway: Pick<Gateway, "journal" | "underWay">,
  call: Call,
  deployment: PricedDeployment | null,
): Promise<void> {
  const intent: Intent = {
    ...call.payers,
    id: call.id,
    startedAt: call.startedAt,
    callType: call.kind.callType,
    modelId: deployment?.id ?? null,
    model: deployment?.model ?? null,
    provider: deployment?.providerName ?? null,
    inputTokens: call.inputTokens,
    inputCost: deployment === null ? 0 : inputCost(call, deployment),
    sessionId: call.sessionId,
    requesterIp: call.requesterIp,
  };
  const written = gateway.journal.intent(intent);
  gateway.underWay.journaled(call.id);
  if (written !== undefined) {
    await written;
  }
}

/** Dollars for the counted input of a call at a deployment. */
function inputCost(call: Call, deployment: PricedDeployment): number {
  return costAt(deployment, inputUsage(call, deployment));
}

/** Dollars; 0 where the deployment has no price. */
export function costAt(
  { priceCard }: Pick<PricedDeployment, "priceCard">,
  usage: Usage,
): number {
  return priceCard === null ? 0 : costOf(priceCard, usage);
}

const NOTHING_TO_PAY: Bill = { cost: 0, unpriced: [] };

/** The row's metadata: what is not billed exactly is marked. */
function metadataOf(
  { metadata, estimated }: Ending,
  { unpriced }: Bill,
  estimatedCost: number,
): Ending["metadata"] {
  const isEstimated = estimated === true || estimatedCost > 0;
  if (unpriced.length === 0 && !isEstimated) {
    return metadata;
  }
  return {
    ...metadata,
    ...(unpriced.length === 0 ? {} : { unpriced_parts: unpriced }),
    ...(isEstimated ? { estimated: true } : {}),
  };
}

/** Of a provider's id of its answer, which stands in an index of the ledger. */
const MOST_ID_CHARACTERS = 256;

/** The second line of the journal, written before the last byte goes to the client. */
export async function journalOutcome(
  gateway: Pick<Gateway, "config" | "database" | "journal" | "underWay">,
  call: Call,
  ending: Ending,
): Promise<Outcome> {
  const { deployment, usage, cached } = ending;
  const endedAt = Date.now();
  const bill =
    deployment?.priceCard == null || usage === null
      ? NOTHING_TO_PAY
      : billOf(deployment.priceCard, usage);
  const estimated = gateway.underWay.estimatedCost(call.id);
  const spend = bill.cost + estimated;
  const counted = usage ?? cached?.usage ?? null;
  const outcome: Outcome = {
    id: call.id,
    endedAt,
    firstTokenAt: ending.firstTokenAt,
    status: ending.status,
    ...(deployment === null
      ? {}
      : {
          modelId: deployment.id,
          model: deployment.model,
          provider: deployment.providerName,
        }),
    spend,
    saved: cached?.saved ?? 0,
    unpriced:
      deployment !== null &&
      usage !== null &&
      (deployment.priceCard === null ||
        (bill.cost === 0 && bill.unpriced.length > 0)),
    promptTokens: counted?.inputTokens ?? 0,
    completionTokens: counted?.outputTokens ?? 0,
    cachedTokens: counted?.cachedInputTokens ?? 0,
    cacheWriteTokens: counted?.cacheWriteTokens ?? 0,
    cacheHit: cached !== null,
    cacheKey: call.cacheKey,
    responseId: ending.responseId?.slice(0, MOST_ID_CHARACTERS) ?? null,
    metadata: metadataOf(ending, bill, estimated),
    // Before the database was there what is drained counts as of an earlier life, which is pending nowhere.
    charged:
      spend === 0 || !gateway.database.ready()
        ? NOBODY
        : chargedWindows(gateway, call, endedAt),
  };
  gateway.underWay.recorded(call.id);
  const written = gateway.journal.outcome(outcome);
  if (written !== undefined) {
    await written;
  }
  return outcome;
}

/** Gives back what admit took and makes the spend visible to the next call. */
export async function settle(
  gateway: Pick<Gateway, "limits" | "pending">,
  call: Call,
  outcome: Outcome,
): Promise<void> {
  await gateway.limits.settle({
    callId: call.id,
    tokens: outcome.cacheHit
      ? 0
      : outcome.promptTokens + outcome.completionTokens,
    pending: gateway.pending.add(outcome.charged, nanosFromCost(outcome.spend)),
  });
}

/** Outcome and settle in a row: the end of every call that has nothing more to say in between. */
export async function endCall(
  gateway: RecordPorts,
  call: Call,
  ending: Ending,
): Promise<Outcome> {
  const outcome = await journalOutcome(gateway, call, ending);
  await settle(gateway, call, outcome);
  measure(gateway, call, outcome, ending);
  return outcome;
}

function measure(
  { metrics }: Pick<Gateway, "metrics">,
  { caller, group, startedAt, stream }: Call,
  outcome: Outcome,
  { deployment, waitedMs }: Ending,
): void {
  const durationMs = Date.now() - startedAt;
  const team = caller.kind === "key" ? caller.team : null;
  metrics.ended({
    alias: group.configured,
    provider: deployment?.providerName ?? "",
    team: team === null ? "" : (team.alias ?? team.id),
    keyAlias: caller.kind === "key" ? (caller.alias ?? "") : "master key",
    status: outcome.status,
    inputTokens: outcome.promptTokens,
    outputTokens: outcome.completionTokens,
    cost: outcome.spend,
    saved: outcome.saved,
    unpriced: outcome.unpriced,
    durationMs,
    addedMs: waitedMs === null ? null : Math.max(0, durationMs - waitedMs),
    firstTokenMs:
      stream && outcome.firstTokenAt !== null
        ? outcome.firstTokenAt - startedAt
        : null,
  });
}

/** Keeps what was asked and answered where the operator wants it; `response` is JSON, made only then. */
export function storePrompt(
  { config, prompts }: Pick<Gateway, "config" | "prompts">,
  call: Call,
  response: () => string | null,
): void {
  if (!config.general.storePrompts) {
    return;
  }
  const { messages, input, prompt } = call.body;
  prompts.record({
    requestId: call.id,
    startedAt: call.startedAt,
    request: JSON.stringify(messages ?? input ?? prompt ?? null),
    response: response(),
  });
}

type Charged = Outcome["charged"];

const NOBODY: Charged = {};
const charged = new WeakMap<readonly LimitedEntity[], Charged>();

/** A call belongs to the window of its end time. */
function chargedWindows(
  gateway: Pick<Gateway, "config">,
  { limitSources }: Call,
  endedAt: number,
): Charged {
  const { timezone } = gateway.config.general;
  const entities = limitedEntities(limitSources, endedAt, timezone);
  const known = charged.get(entities);
  if (known !== undefined) {
    return known;
  }
  const windows = Object.fromEntries(
    entities
      .filter(({ budget }) => budget !== null)
      .map(({ entity, window }) => [entity, window]),
  );
  charged.set(entities, windows);
  return windows;
}
