import type { FastifyRequest } from "fastify";
import { isMasterKey } from "../access/authenticate.ts";
import { hashKey, readKey } from "../access/keys.ts";
import type { RouteName } from "../access/policy.ts";
import type { Gateway } from "../gateway.ts";
import {
  CallError,
  errorBody,
  loggedMessage,
  statusOf,
  type ErrorKind,
} from "../http/errors.ts";
import type { LitellmMetrics } from "../metrics/litellm/litellm-metrics.ts";

/** Errors that do not reject a known key: there is no key, the fault is internal, or the provider answered. */
const NOT_REFUSED: ReadonlySet<ErrorKind> = new Set([
  "no_key",
  "malformed_key",
  "unknown_key",
  "invalid_token",
  "issuer_unavailable",
  "upstream_error",
  "not_found",
  "database_unavailable",
  "internal",
]);

/** Records a call that was rejected before a provider was called, for the holder of its key. */
export function recordRejection(
  gateway: Pick<
    Gateway,
    "callers" | "catalog" | "config" | "jwt" | "metrics" | "refusals"
  >,
  request: FastifyRequest,
  error: unknown,
  route: RouteName,
): void {
  if (gateway.metrics.litellm !== null) {
    countForLitellm(gateway.metrics.litellm, gateway, request, error, route);
  }
  if (!(error instanceof CallError) || NOT_REFUSED.has(error.kind)) {
    return;
  }
  gateway.metrics.refused(errorBody(error).error.type);
  const apiKey = keyOf(gateway, request);
  if (apiKey === null) {
    return;
  }
  const { type } = errorBody(error).error;
  const model = modelIn(request);
  gateway.refusals.record({
    at: Date.now(),
    apiKey,
    type,
    status: statusOf(error),
    model: model?.replaceAll("\0", "") ?? null,
    message: loggedMessage(error).replaceAll("\0", ""),
  });
}

function modelIn({ body }: FastifyRequest): string | null {
  const model = (body as { model?: unknown } | null | undefined)?.model;
  return typeof model === "string" ? model : null;
}

/** Errors of calls that LiteLLM does not count: guessed keys would be series, and failed calls in the journal are counted there. */
const NOT_COUNTED: ReadonlySet<ErrorKind> = new Set([
  "no_key",
  "malformed_key",
  "unknown_key",
  "invalid_token",
  "upstream_error",
  "not_found",
]);

function countForLitellm(
  metrics: LitellmMetrics,
  { catalog }: Pick<Gateway, "catalog">,
  request: FastifyRequest,
  error: unknown,
  route: RouteName,
): void {
  const { caller, call, admitted } = request;
  const isCounted =
    error instanceof CallError
      ? !NOT_COUNTED.has(error.kind)
      : admitted === null;
  if (!isCounted) {
    return;
  }
  const model = modelIn(request);
  const teamId = caller?.kind === "key" ? (caller.team?.id ?? null) : null;
  const group = model === null ? null : catalog.find(model, teamId);
  metrics.rejected({
    error,
    caller,
    call,
    alias: group?.configured ?? null,
    route,
  });
}

/** The hash of the caller's key, or of that of its token; empty for the master key; null for an unknown one: guessed keys are not recorded. */
function keyOf(
  gateway: Pick<Gateway, "callers" | "config" | "jwt">,
  request: FastifyRequest,
): string | null {
  const credential = readKey(request.headers);
  if (credential === null) {
    return null;
  }
  const token = hashKey(credential);
  if (isMasterKey(gateway, token)) {
    return "";
  }
  const key = gateway.jwt.keyOf(token) ?? token;
  return gateway.callers.keys.recall(key)?.token ?? null;
}
