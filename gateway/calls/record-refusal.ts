import type { FastifyRequest } from "fastify";
import { isMasterKey } from "../access/authenticate.ts";
import { hashKey, readKey } from "../access/keys.ts";
import type { Gateway } from "../gateway.ts";
import {
  CallError,
  errorBody,
  loggedMessage,
  statusOf,
  type ErrorKind,
} from "../http/errors.ts";

/** Errors that do not reject a known key: there is no key, the fault is internal, or the provider answered. */
const NOT_REFUSED: ReadonlySet<ErrorKind> = new Set([
  "no_key",
  "malformed_key",
  "unknown_key",
  "upstream_error",
  "not_found",
  "database_unavailable",
  "internal",
]);

/** Records a call that was rejected before a provider was called, for the holder of its key. */
export function recordRejection(
  gateway: Pick<Gateway, "callers" | "config" | "metrics" | "refusals">,
  request: FastifyRequest,
  error: unknown,
): void {
  if (!(error instanceof CallError) || NOT_REFUSED.has(error.kind)) {
    return;
  }
  gateway.metrics.refused(errorBody(error).error.type);
  const apiKey = keyOf(gateway, request);
  if (apiKey === null) {
    return;
  }
  const { type } = errorBody(error).error;
  const model = (request.body as { model?: unknown } | null | undefined)?.model;
  gateway.refusals.record({
    at: Date.now(),
    apiKey,
    type,
    status: statusOf(error),
    model: typeof model === "string" ? model.replaceAll("\0", "") : null,
    message: loggedMessage(error).replaceAll("\0", ""),
  });
}

/** The hash of the caller's key, empty for the master key; null for an unknown one: guessed keys are not recorded. */
function keyOf(
  gateway: Pick<Gateway, "callers" | "config">,
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
  return gateway.callers.keys.recall(token)?.token ?? null;
}
