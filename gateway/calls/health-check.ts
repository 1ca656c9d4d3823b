import { randomUUID } from "node:crypto";
import { z } from "zod";
import { MASTER_USER } from "../access/callers.ts";
import { proxyLimitsOf } from "../ledger/payers.ts";
import { usageOf } from "../tokens/usage.ts";
import type { Gateway } from "../gateway.ts";
import { CallError } from "../http/errors.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import type { Call, CallKind } from "./call.ts";
import type { CallBody } from "./body.ts";
import { callProvider, chooseDeployment } from "./provider.ts";
import { endCall, journalIntent } from "./record.ts";
import { whileAdmitted } from "./while-admitted.ts";

const LIMIT_MS = 10_000;
const PROMPT = "ping";

const HEALTH: Pick<
  CallKind,
  "route" | "callType" | "streams" | "shape" | "schema"
> = {
  route: "GET /health",
  callType: "health_check",
  streams: false,
  shape: null,
  schema: z.looseObject({ model: z.string() }),
};

/**
 * Calls one deployment for one token, past its limits but on the books: a row `health_check` of the master key's user.
 * null when it answers, else one sentence.
 */
export async function tryDeployment(
  gateway: Gateway,
  deployment: PricedDeployment,
): Promise<string | null> {
  const call = healthCall(gateway, deployment);
  try {
    await whileAdmitted(gateway, call, async () => {
      const route = await chooseDeployment(gateway, call);
      await journalIntent(gateway, call, deployment);
      const upstream = await callProvider(gateway, call, route, null);
      if (upstream.kind !== "whole") {
        return;
      }
      const { facts } = upstream.translation.answer(upstream.body);
      await endCall(gateway, call, {
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
    return null;
  } catch (error) {
    if (error instanceof CallError) {
      return error.message;
    }
    throw error;
  }
}

function healthCall(gateway: Gateway, deployment: PricedDeployment): Call {
  const embeds = deployment.mode === "embedding";
  const body: CallBody = embeds
    ? { model: deployment.alias, input: PROMPT }
    : {
        model: deployment.alias,
        max_tokens: 1,
        messages: [{ role: "user", content: PROMPT }],
      };
  const { general } = gateway.config;
  const startedAt = Date.now();
  return {
    id: randomUUID(),
    startedAt,
    kind: {
      ...HEALTH,
      endpoint: embeds ? "embeddings" : "chat",
      countInput: () => 1,
      estimateOutput: () => 1,
    },
    caller: { kind: "master", userId: MASTER_USER, user: null },
    group: {
      alias: deployment.alias,
      configured: deployment.alias,
      deployments: [deployment],
      pending: null,
    },
    body,
    stream: false,
    payers: {
      apiKey: null,
      userId: MASTER_USER,
      userPays: true,
      teamId: null,
      organizationId: null,
      endUser: null,
      tags: [],
      alias: deployment.alias,
    },
    limitSources: {
      caller: { kind: "master", userId: MASTER_USER, user: null },
      alias: deployment.alias,
      endUser: null,
      tags: [],
      proxy: proxyLimitsOf(general),
    },
    inputTokens: 1,
    outputTokens: embeds ? 0 : 1,
    cache: { read: false, store: false, asked: false, ttlMs: null },
    wishes: {
      timeoutMs: LIMIT_MS,
      numRetries: 0,
      fallbacks: [],
      mock: { response: null, failFirst: false, timeout: false },
    },
    deadlineAt: startedAt + LIMIT_MS,
    forwarded: {},
    cacheKey: null,
    itemKeys: null,
    whole: null,
    sessionId: null,
    requesterIp: "",
  };
}
