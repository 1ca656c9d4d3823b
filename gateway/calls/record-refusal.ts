import type { FastifyRequest } from "fastify";
import { isMasterKey } from "../access/authenticate.ts";
import { hashKey, readKey } from "../access/keys.ts";
import type { Gateway } from "../gateway.ts";
import {
  CallError,
  errorBody,
  statusOf,
  type ErrorKind,
} from "../http/errors.ts";

/** Errors that are no refusal of a known key: nobody to tell it to, a fault of ours, or a provider's own answer. */
const NOT_REFUSED: ReadonlySet<ErrorKind> = new Set([
  "no_key",
  "malformed_key",
  "unknown_key",
  "upstream_error",
  "not_found",
  "database_unavailable",
  "internal",
]);

/** Notes a call that was refused before a provider was asked, for whoever holds its key. */
export function recordRefusal(
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
  const { type, message } = errorBody(error).error;
  const model = (request.body as { model?: unknown } | null | undefined)?.model;
  gateway.refusals.record({
    at: Date.now(),
    apiKey,
    type,
    status: statusOf(error),
    model: typeof model === "string" ? model.replaceAll("\0", "") : null,
    message: message.replaceAll("\0", ""),
  });
}

/** Hash of the known key that asked, empty for the master key; null for a strange one: who guesses keys writes nothing. */
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
