import type { LimitedEntity } from "../limits/limits.ts";
import { limitedEntities } from "../ledger/payers.ts";
import { nanosFromCost } from "../pricing/money.ts";
import { billAt } from "../pricing/bill.ts";
import type { Usage } from "../tokens/reported-usage.ts";
import type { Intent, Outcome } from "../ledger/records.ts";
import { inputUsage } from "../tokens/usage.ts";
import type { Gateway } from "../gateway.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { timeIn } from "./call-clock.ts";
import type { Call } from "./call.ts";
import { chargeOf, type Chargeable } from "./charge.ts";
import { reportFinished } from "./finished.ts";

/** How a call ended. */
export interface Ending extends Chargeable {
  readonly status: "success" | "failure";
  readonly firstTokenAt: number | null;
  readonly responseId: string | null;
  /** Ms of waiting for others; null: unknown. */
  readonly waitedMs: number | null;
  /** Dollars that attempts besides the one of `usage` may cost; absent: what is noted of them. */
  readonly failedAttempts?: number;
  /** The answer as JSON, for those who store or export it; without it, or null, there is none to show. */
  readonly response?: () => string | null;
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
  | "prompts"
  | "traces"
  | "activeCalls"
  | "webhook"
>;

/** Writes the intent to the journal, before the call leaves. Throws `journal_full`. */
export async function journalIntent(
  gateway: Pick<Gateway, "journal" | "activeCalls">,
  call: Call,
  deployment: PricedDeployment,
): Promise<void> {
  const cost = inputCost(call, deployment);
  const written = gateway.journal.intent(intentOf(call, deployment, cost));
  gateway.activeCalls.journaled(call.id);
  if (written !== undefined) {
    await written;
  }
}

/** A call as one deployment gets it. */
export interface JournaledAttempt {
  readonly call: Call;
  readonly deployment: PricedDeployment;
}

/**
 * Writes the intent of a call again, before a further attempt leaves: if the process dies, the inputs of all attempts that are under
 * way are billed, and of earlier ones what they may cost. Throws `journal_full`.
 */
export async function journalFurther(
  gateway: Pick<Gateway, "journal" | "activeCalls">,
  call: Call,
  attempts: readonly [JournaledAttempt, ...JournaledAttempt[]],
): Promise<void> {
  const cost = attempts.reduce(
    (sum, attempt) => sum + inputCost(attempt.call, attempt.deployment),
    gateway.activeCalls.estimatedCost(call.id),
  );
  await gateway.journal.amend(intentOf(call, attempts[0].deployment, cost));
}

function intentOf(
  call: Call,
  deployment: PricedDeployment | null,
  cost: number,
): Intent {
  return {
    ...call.payers,
    id: call.id,
    startedAt: call.startedAt,
    callType: call.kind.callType,
    modelId: deployment?.id ?? null,
    model: deployment?.model ?? null,
    provider: deployment?.providerName ?? null,
    inputTokens: call.inputTokens,
    inputCost: cost,
    sessionId: call.sessionId,
    requesterIp: call.requesterIp,
  };
}

/** Dollars for the counted input of a call at a deployment. */
function inputCost(call: Call, deployment: PricedDeployment): number {
  return costAt(deployment, inputUsage(call, deployment));
}

/** Dollars; 0 if no price is known. */
export function costAt(deployment: PricedDeployment, usage: Usage): number {
  return billAt(deployment, usage)?.cost ?? 0;
}

/** Of a provider's id of its answer, which is indexed in the ledger. */
const MAX_ID_CHARACTERS = 256;

/** What the journal keeps of the end of a call. */
function outcomeOf(
  gateway: Pick<Gateway, "config" | "database" | "activeCalls">,
  call: Call,
  ending: Ending,
): Outcome {
  const { deployment, usage, cached } = ending;
  const { activeCalls } = gateway;
  const endedAt = timeIn(call);
  const charge = chargeOf(
    ending,
    ending.failedAttempts ?? activeCalls.estimatedCost(call.id),
    activeCalls.deploymentsPassedOver(call.id),
  );
  const counted = usage ?? cached?.usage ?? null;
  return {
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
    ...charge,
    promptTokens: counted?.inputTokens ?? 0,
    completionTokens: counted?.outputTokens ?? 0,
    cachedTokens: counted?.cachedInputTokens ?? 0,
    cacheWriteTokens: counted?.cacheWriteTokens ?? 0,
    cacheHit: cached !== null,
    cacheKey: call.cacheKey,
    responseId: ending.responseId?.slice(0, MAX_ID_CHARACTERS) ?? null,
    ...(ending.waitedMs === null
      ? {}
      : { waitedMs: Math.round(ending.waitedMs) }),
    // Until the database is ready, drained calls count as those of a previous process, which are pending nowhere.
    charged:
      charge.spend === 0 || !gateway.database.ready()
        ? NO_PAYER
        : chargedWindows(gateway, call, endedAt),
  };
}

/** Releases the reservation and makes the spend visible to the next call. */
async function settle(
  gateway: Pick<Gateway, "limits" | "pending" | "activeCalls">,
  call: Call,
  outcome: Outcome,
): Promise<void> {
  gateway.activeCalls.settled(call.id);
  await gateway.limits.settle({
    callId: call.id,
    tokens: outcome.cacheHit
      ? 0
      : outcome.promptTokens + outcome.completionTokens,
    pending: gateway.pending.add(outcome.charged, nanosFromCost(outcome.spend)),
  });
}

const noResponse = () => null;

/** The intent of a call for which nothing was sent is written with its outcome: then this throws `journal_full`. */
function journalEnd(
  { journal, activeCalls }: Pick<Gateway, "journal" | "activeCalls">,
  call: Call,
  outcome: Outcome,
): Promise<void> | undefined {
  if (activeCalls.hasOpenIntent(call.id)) {
    activeCalls.recorded(call.id);
    return journal.outcome(outcome);
  }
  const written = journal.record(intentOf(call, null, 0), outcome);
  activeCalls.recorded(call.id);
  return written;
}

/**
 * Journals the outcome, settles, and passes the call on to whatever shows it: the end of every call, before the last byte is sent
 * to the client.
 */
export async function endCall(
  gateway: RecordPorts,
  call: Call,
  ending: Ending,
): Promise<Outcome> {
  const outcome = outcomeOf(gateway, call, ending);
  const written = journalEnd(gateway, call, outcome);
  try {
    if (written !== undefined) {
      await written;
    }
  } finally {
    // Also when it could not be flushed: the line is drained nevertheless, and what is drained must have been pending.
    await settle(gateway, call, outcome);
  }
  measure(gateway, call, outcome, ending);
  const { deployment, response = noResponse } = ending;
  if (ending.response !== undefined) {
    storePrompt(gateway, call, response);
  }
  reportFinished(gateway, call, outcome, { deployment, response });
  return outcome;
}

function measure(
  { metrics }: Pick<Gateway, "metrics">,
  call: Call,
  outcome: Outcome,
  ending: Ending,
): void {
  const { caller, group, kind, startedAt, stream } = call;
  const { deployment, waitedMs } = ending;
  const durationMs = timeIn(call) - startedAt;
  const team = caller.kind === "key" ? caller.team : null;
  metrics.ended({
    alias: group.configured,
    provider: deployment?.providerName ?? "",
    team: team === null ? "" : (team.alias ?? team.id),
    keyAlias: caller.kind === "key" ? (caller.alias ?? "") : "master key",
    status: outcome.status,
    callType: kind.callType,
    inputTokens: outcome.promptTokens,
    outputTokens: outcome.completionTokens,
    cost: outcome.spend,
    saved: outcome.cacheHit ? outcome.saved : 0,
    unpriced: outcome.unpriced,
    durationMs,
    addedMs: waitedMs === null ? null : Math.max(0, durationMs - waitedMs),
    firstTokenMs:
      stream && outcome.firstTokenAt !== null
        ? outcome.firstTokenAt - startedAt
        : null,
  });
  if (metrics.litellm !== null && kind.callType !== "health_check") {
    metrics.litellm.ended(call, deployment, failureStatusOf(outcome), {
      outcome,
      usage: ending.usage,
      stream,
      startedAt,
      cacheable: call.cacheKey !== null,
      durationMs,
      waitedMs,
    });
  }
}

/** null: the call succeeded. Without a status of a provider the failure was the gateway's own. */
function failureStatusOf({ status, metadata }: Outcome): number | null {
  if (status === "success") {
    return null;
  }
  const error = metadata?.["error_information"] as
    { readonly error_code?: string } | undefined;
  return Number(error?.error_code ?? 500);
}

/** Stores request and answer if that is on for the call; `response` gives JSON and is called only then. */
function storePrompt(
  { prompts }: Pick<Gateway, "prompts">,
  call: Call,
  response: () => string | null,
): void {
  if (call.storedHeaders === null) {
    return;
  }
  const { messages, input, prompt, query } = (call.whole ?? call).body;
  prompts.record({
    requestId: call.id,
    startedAt: call.startedAt,
    headers: call.storedHeaders,
    request: JSON.stringify(messages ?? input ?? prompt ?? query ?? null),
    response: response(),
  });
}

type Charged = Outcome["charged"];

const NO_PAYER: Charged = {};
const charged = new WeakMap<readonly LimitedEntity[], Charged>();

/** A call belongs to the window in which it ended. */
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
