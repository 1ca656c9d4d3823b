import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { Gateway } from "../gateway.ts";
import { GuardUnavailable } from "../guardrails/guard.ts";
import { CallError, type ErrorKind } from "../http/errors.ts";
import { parseRecord, recordOf, recordsOf } from "../../core/json.ts";
import { startClock } from "./call-clock.ts";
import { tokenizedModel, type Call, type CallKind } from "./call.ts";
import { NO_MOCK } from "./options.ts";
import { INTERACTIVE } from "./priority.ts";
import { chooseDeployment } from "./choose-deployment.ts";
import { callProvider } from "./provider.ts";
import { recordAnswer } from "./record-answer.ts";
import { journalIntent } from "./record.ts";
import { whileAdmitted } from "./while-admitted.ts";

const TIMEOUT_MS = 10_000;

/** A call of a guardrail to its moderation model. */
export const MODERATION: CallKind = {
  route: "POST /v1/moderations",
  callType: "amoderation",
  endpoint: "moderations",
  streams: false,
  shape: null,
  schema: z.looseObject({ model: z.string() }),
  countInput: (gateway, body, model) =>
    gateway.tokens.countEmbeddingInput(body["input"], model),
  estimateOutput: () => 0,
};

/** The call on whose behalf a guardrail asks. */
type Origin = Pick<
  Call,
  "caller" | "payers" | "limitSources" | "sessionId" | "requesterIp"
>;

/**
 * The categories to which a moderation model objects; empty: none. The call has its own row, paid by the payers of `origin`,
 * under whose admission it runs: it takes no further place in their limits.
 */
export async function moderate(
  gateway: Gateway,
  origin: Origin,
  alias: string,
  texts: readonly string[],
): Promise<readonly string[]> {
  const call = moderationCall(gateway, origin, alias, texts);
  return askModeration(gateway, call);
}

/** Throws {@link GuardUnavailable} for a model that no longer exists, is switched off or pending. */
export function moderationCall(
  gateway: Pick<Gateway, "catalog" | "tokens">,
  origin: Origin,
  alias: string,
  texts: readonly string[],
): Call {
  const group = gateway.catalog.find(alias);
  if (group === null || group.blocked || group.pending !== null) {
    throw new GuardUnavailable(
      group === null
        ? `its model ${alias} does not exist`
        : group.blocked
          ? `its model ${alias} is switched off`
          : `its model ${alias} is pending: ${group.pending} is not set`,
    );
  }
  const body = { model: alias, input: texts };
  const { caller, payers, limitSources, sessionId, requesterIp } = origin;
  return {
    id: randomUUID(),
    ...startClock(),
    kind: MODERATION,
    caller,
    group,
    body,
    stream: false,
    payers: { ...payers, alias },
    limitSources: { ...limitSources, alias },
    inputTokens: MODERATION.countInput(gateway, body, tokenizedModel(group)),
    outputTokens: 0,
    measure: null,
    cache: { read: false, store: false, requested: false, ttlMs: null },
    options: {
      timeoutMs: TIMEOUT_MS,
      numRetries: null,
      fallbacks: [],
      dropParams: null,
      unlogged: true,
      place: INTERACTIVE,
      mock: NO_MOCK,
    },
    fallbacks: { names: [], replacements: new Map() },
    ownAccess: false,
    race: null,
    deadlineAt: performance.now() + TIMEOUT_MS,
    forwarded: {},
    cacheKey: null,
    itemKeys: null,
    whole: null,
    sessionId,
    userAgent: null,
    storedHeaders: null,
    requesterIp,
    trace: null,
    guards: null,
    responseContext: null,
  };
}

/** Failures of the model itself; what rejects the caller, such as its budget, is passed on. */
const UNAVAILABLE: ReadonlySet<ErrorKind> = new Set([
  "upstream_error",
  "no_deployments_available",
  "queue_full",
  "queue_timeout",
  "invalid_request",
]);

export async function askModeration(
  gateway: Gateway,
  call: Call,
): Promise<readonly string[]> {
  try {
    return await whileAdmitted(gateway, call, null, async () => {
      const route = await chooseDeployment(gateway, call, null);
      await journalIntent(gateway, call, route.target.deployment);
      const upstream = await callProvider(gateway, call, route, null);
      if (upstream.kind !== "whole") {
        throw new Error("moderations are never streamed");
      }
      const { body, facts } = upstream.translation.answer(upstream.body);
      await recordAnswer(gateway, call, upstream, facts, { metadata: null });
      return categoriesIn(body);
    });
  } catch (error) {
    throw error instanceof CallError && UNAVAILABLE.has(error.kind)
      ? new GuardUnavailable(`its model ${call.group.alias} does not answer`)
      : error;
  }
}

function categoriesIn(body: Buffer): readonly string[] {
  const results = parseRecord(body.toString("utf8"))?.["results"];
  const each = recordsOf(results);
  if (each.some(({ flagged }) => typeof flagged !== "boolean")) {
    throw unreadable();
  }
  if (each.length === 0) {
    throw unreadable();
  }
  const flagged = each.filter((result) => result["flagged"] === true);
  const names = flagged.flatMap((result) =>
    Object.entries(recordOf(result["categories"]))
      .filter(([, applies]) => applies === true)
      .map(([name]) => name),
  );
  return flagged.length > 0 && names.length === 0
    ? ["flagged"]
    : [...new Set(names)];
}

function unreadable(): GuardUnavailable {
  return new GuardUnavailable(
    "its model did not answer in the shape of moderations",
  );
}
