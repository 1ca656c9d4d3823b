import { statusOf, type CallError } from "../http/errors.ts";
import type { JsonRecord } from "../../core/json.ts";

/** The error shape of Google's APIs; `retryAfter` in seconds. https://cloud.google.com/apis/design/errors */
export function contentsError(
  status: number,
  message: string,
  retryAfter?: string,
): JsonRecord {
  const retry = {
    "@type": "type.googleapis.com/google.rpc.RetryInfo",
    retryDelay: `${retryAfter}s`,
  };
  return {
    error: {
      code: status,
      message,
      status: nameOf(status),
      ...(retryAfter === undefined ? {} : { details: [retry] }),
    },
  };
}

export function contentsErrorOf(error: CallError): JsonRecord {
  return contentsError(
    statusOf(error),
    error.message,
    error.details.headers?.["retry-after"],
  );
}

function nameOf(status: number): string {
  switch (status) {
    case 401:
      return "UNAUTHENTICATED";
    case 403:
      return "PERMISSION_DENIED";
    case 404:
      return "NOT_FOUND";
    case 408:
    case 504:
      return "DEADLINE_EXCEEDED";
    case 409:
      return "ABORTED";
    case 429:
      return "RESOURCE_EXHAUSTED";
    case 502:
    case 503:
    case 529:
      return "UNAVAILABLE";
    default:
      return status >= 500 ? "INTERNAL" : "INVALID_ARGUMENT";
  }
}
