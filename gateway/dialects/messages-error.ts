import { statusOf, type CallError } from "../http/errors.ts";
import type { JsonRecord } from "../../core/json.ts";

/** The error shape of Anthropic's API. https://platform.claude.com/docs/en/api/errors */
export function messagesError(
  status: number,
  message: string,
  details: JsonRecord = {},
): JsonRecord {
  return {
    type: "error",
    error: { type: typeOf(status), message, ...details },
  };
}

export function messagesErrorOf(error: CallError): JsonRecord {
  const { code } = error.details;
  const details = code === undefined ? {} : { details: { error_code: code } };
  return messagesError(statusOf(error), error.message, details);
}

function typeOf(status: number): string {
  switch (status) {
    case 401:
      return "authentication_error";
    case 402:
      return "billing_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 409:
      return "conflict_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 408:
    case 504:
      return "timeout_error";
    case 503:
    case 529:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}
