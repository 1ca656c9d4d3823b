import type { Gateway } from "../gateway.ts";
import { CallError } from "../http/errors.ts";
import {
  CONTEXT_LENGTH_EXCEEDED,
  isContextWindow,
  type UpstreamFailure,
} from "../providers/failure.ts";
import type { Call } from "./call.ts";
import { errorTextFor } from "./hide-addresses.ts";

/** A provider's failure as the caller sees it. */
export function failedCallError(
  gateway: Pick<Gateway, "catalog">,
  { caller, group }: Pick<Call, "caller" | "group">,
  failure: UpstreamFailure,
  headers: Readonly<Record<string, string>> = {},
): CallError {
  return new CallError(
    "upstream_error",
    `${group.alias}: ${errorTextFor(caller, gateway, failure.message)}`,
    {
      status: failure.status,
      headers,
      ...(isContextWindow(failure) ? { code: CONTEXT_LENGTH_EXCEEDED } : {}),
    },
  );
}
