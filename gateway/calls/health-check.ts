import { randomUUID } from "node:crypto";
import { z } from "zod";
import { MASTER_USER, type Caller } from "../access/callers.ts";
import { proxyLimitsOf } from "../ledger/payers.ts";
import { usageOf } from "../tokens/usage.ts";
import type { Gateway } from "../gateway.ts";
import { CallError } from "../http/errors.ts";
import type { Outcome } from "../ledger/records.ts";
import { groupOf, type PricedDeployment } from "../routing/catalog.ts";
import { startClock, timeIn } from "./call-clock.ts";
import type { Call, CallKind } from "./call.ts";
import { probeFor } from "./health-probes.ts";
import { NO_MOCK } from "./options.ts";
import { INTERACTIVE } from "./priority.ts";
import { chooseDeployment } from "./choose-deployment.ts";
import { callProvider } from "./provider.ts";
import { endCall, journalIntent } from "./record.ts";
import { whileAdmitted } from "./while-admitted.ts";

const TIMEOUT_MS = 10_000;
const CALLER: Caller = { kind: "master", userId: MASTER_USER, user: null };

const KIND = {
  route: "GET /health",
  callType: "health_check",
  streams: false,
  shape: null,
  schema: z.looseObject({ model: z.string() }),
  countInput: () => 1,
  estimateOutput: () => 1,
} satisfies Partial<CallKind>;

/** What all checks have in common. */
const CHECK = {
  caller: CALLER,
  stream: false,
  inputTokens: 1,
  cache: { read: false, store: false, requested: false, ttlMs: null },
  options: {
    timeoutMs: TIMEOUT_MS,
    numRetries: 0,
    fallbacks: [],
    dropParams: null,
    unlogged: false,
    place: INTERACTIVE,
    mock: NO_MOCK,
  },
  fallbacks: { names: [], replacements: new Map() },
  ownAccess: false,
  race: null,
  userAgent: null,
  storedHeaders: null,
  forwarded: {},
  cacheKey: null,
  itemKeys: null,
  whole: null,
  sessionId: null,
  requesterIp: "",
  trace: null,
  guards: null,
  responseContext: null,
} satisfies Partial<Call>;

/** The result of a call that only tests. */
export type Tried =
  | { readonly error: string }
  | {
      readonly error: null;
      /** Until the whole answer. */
      readonly latencyMs: number;
      /** null: it answered without content to count. */
      readonly outcome: Pick<
        Outcome,
        "promptTokens" | "completionTokens" | "spend"
      > | null;
    };

/**
 * Calls one deployment for one token, regardless of its limits, also while it is switched off; the ledger gets a row
 * `health_check` of the master key's user. An error is one sentence.
 */
export async function tryDeployment(
  gateway: Gateway,
  given: PricedDeployment,
): Promise<Tried> {
  const deployment = { ...given, blocked: false };
  const call = healthCall(gateway, deployment);
  let outcome: Outcome | null = null;
  try {
    await whileAdmitted(gateway, call, null, async () => {
      const route = await chooseDeployment(gateway, call, null);
      await journalIntent(gateway, call, deployment);
      const upstream = await callProvider(gateway, call, route, null);
      if (upstream.kind !== "whole") {
        return;
      }
      const { facts } = upstream.translation.answer(upstream.body);
      outcome = await endCall(gateway, call, {
        status: "success",
        deployment,
        usage: usageOf(gateway.tokens, call, deployment, facts),
        firstTokenAt: null,
        responseId: facts.responseId,
        cached: null,
        waitedMs: upstream.waitedMs,
        metadata: null,
      });
    });
    return { error: null, latencyMs: timeIn(call) - call.startedAt, outcome };
  } catch (error) {
    if (error instanceof CallError) {
      return { error: error.message };
    }
    throw error;
  }
}

function healthCall(
  gateway: Pick<Gateway, "config">,
  deployment: PricedDeployment,
): Call {
  const { alias, mode } = deployment;
  const { body, measure = null, ...kind } = probeFor(mode);
  return {
    ...CHECK,
    id: randomUUID(),
    ...startClock(),
    kind: { ...KIND, ...kind },
    group: groupOf(alias, [deployment]),
    body: { ...body, model: alias },
    measure,
    payers: {
      apiKey: null,
      userId: MASTER_USER,
      userPays: true,
      teamId: null,
      organizationId: null,
      endUser: null,
      tags: [],
      alias,
    },
    limitSources: {
      caller: CALLER,
      alias,
      endUser: null,
      tags: [],
      proxy: proxyLimitsOf(gateway.config.general),
    },
    outputTokens: kind.endpoint === "chat" ? 1 : 0,
    deadlineAt: performance.now() + TIMEOUT_MS,
  };
}
