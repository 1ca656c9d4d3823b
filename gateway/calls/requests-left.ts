import type { FastifyRequest } from "fastify";
import type { Caller } from "../access/callers.ts";
import type { Gateway } from "../gateway.ts";
import { limitedEntities, proxyLimitsOf } from "../ledger/payers.ts";
import { rejectionError } from "./refusals.ts";

/** Up to this size, reading a body and counting its tokens costs no more than asking Redis once more. */
const SMALL_BYTES = 16_384;

/**
 * Throws 429 before a large body is read where the caller has no requests left in the minute: reading it to reject the call with
 * the same error would delay other calls. Tokens and parallel slots may be released meanwhile, requests are not.
 */
export async function rejectWithoutRequestsLeft(
  { config, limits }: Pick<Gateway, "config" | "limits">,
  caller: Caller,
  { headers }: Pick<FastifyRequest, "headers">,
): Promise<void> {
  // Without the header the size is unknown.
  if (Number(headers["content-length"] ?? Infinity) <= SMALL_BYTES) {
    return;
  }
  const { general } = config;
  const proxy = proxyLimitsOf(general);
  const sources = { caller, alias: "", endUser: null, tags: [], proxy };
  const limited = limitedEntities(sources, Date.now(), general.timezone).filter(
    ({ requestsPerMinute }) => requestsPerMinute !== null,
  );
  if (limited.length === 0) {
    return;
  }
  for (const { entity, requests } of await limits.look(limited)) {
    // Of a limit of 0, no minute is running: the rejection of the call itself says how long.
    if (requests?.remaining === 0 && requests.resetInMs > 0) {
      const { limit: allowed, resetInMs } = requests;
      throw rejectionError(
        { kind: "rate_limited", entity, limit: "requests", allowed, resetInMs },
        { dollars: null, resetsAt: Infinity },
      );
    }
  }
}
