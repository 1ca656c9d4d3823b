import type { FastifyRequest } from "fastify";
import type { Gateway } from "../gateway.ts";
import { CallError, statusOf } from "../http/errors.ts";
import { litellmClassOf } from "../http/litellm-classes.ts";
import { isContentFilter, isContextWindow } from "../providers/failure.ts";
import { errorHeaders } from "./headers.ts";

/** The error of a call as it is sent: with the headers of an answer, in LiteLLM's dialect if that is switched on. */
export function completeCallError(
  gateway: Pick<Gateway, "config" | "limits" | "pending">,
  request: FastifyRequest,
  error: CallError,
): CallError {
  const { kind, message, details } = inDialect(gateway, error);
  return new CallError(kind, message, {
    ...details,
    headers: errorHeaders(gateway, request, details.headers ?? {}),
  });
}

/**
 * With `litellm_headers`, errors of providers and parameters start with the class that LiteLLM names, and so do those with a 403: its SDK
 * takes the class of a 403 from there only.
 */
export function inDialect(
  { config }: Pick<Gateway, "config">,
  error: CallError,
): CallError {
  const { kind, message, details } = error;
  const isNamed =
    kind === "upstream_error" ||
    kind === "invalid_request" ||
    statusOf(error) === 403;
  return config.general.litellmHeaders && isNamed
    ? new CallError(kind, `${litellmClasses(error)}: ${message}`, details)
    : error;
}

function litellmClasses(error: CallError): string {
  const status = statusOf(error);
  const { message } = error;
  const general = `litellm.${litellmClassOf(status)}`;
  if (isContextWindow({ status, message })) {
    return `litellm.ContextWindowExceededError: ${general}`;
  }
  return isContentFilter({ status, message })
    ? `litellm.ContentPolicyViolationError: ${general}`
    : general;
}
