import type { Refusal } from "../limits/limits.ts";
import { dollarsFromNanos } from "../pricing/money.ts";
import { CallError } from "../http/errors.ts";

/**
 * What a caller is told when a limit refuses: which one, whose, and when to come back. `renewsAt`: when the payer's budget
 * begins anew, ms since the epoch; Infinity: never.
 */
export function refusalError(refusal: Refusal, renewsAt: number): CallError {
  switch (refusal.kind) {
    case "budget_exceeded":
      return new CallError(
        "budget_exceeded",
        // Up to the semicolon LiteLLM's own words, which its clients look for.
        `Budget has been exceeded! ${prefixOf(refusal.entity)}Current cost: ${dollarsFromNanos(refusal.spend)}, Max budget: ${dollarsFromNanos(refusal.budget)}; ${
          renewsAt === Infinity || refusal.budget === 0
            ? "ask whoever runs this gateway for more."
            : `it renews at ${new Date(renewsAt).toISOString()}.`
        }`,
        { headers: { "x-should-retry": "false" } },
      );
    case "estimate_too_large":
      return new CallError(
        "budget_exceeded",
        `The worst case of this call does not fit in the budget! ${prefixOf(refusal.entity)}It may cost ${dollarsFromNanos(refusal.estimate)}, left: ${dollarsFromNanos(refusal.remaining)}. Send a smaller max_tokens.`,
        { headers: { "x-should-retry": "false" } },
      );
    case "budget_held":
      return new CallError(
        "budget_held",
        `The rest of the budget${ofWhom(refusal.entity)} is held by ${heldBy(refusal.inFlight)}`,
        { headers: { "retry-after": "1" } },
      );
    case "rate_limited": {
      const seconds = Math.max(1, Math.ceil(refusal.resetInMs / 1_000));
      const limit = {
        requests: "requests per minute",
        tokens: "tokens per minute",
        parallel: "parallel requests",
      }[refusal.limit];
      const what = refusal.limit === "parallel" ? "requests" : refusal.limit;
      return new CallError(
        "rate_limit_exceeded",
        `Rate limit reached${ofWhom(refusal.entity) || " for this key"}: ${refusal.allowed} ${limit}. It resets in ${seconds} s.`,
        {
          headers: {
            "retry-after": String(seconds),
            [`x-ratelimit-limit-${what}`]: String(refusal.allowed),
            [`x-ratelimit-remaining-${what}`]: "0",
            [`x-ratelimit-reset-${what}`]: String(seconds),
          },
        },
      );
    }
  }
}

/** No calls: what is held is on its way into the ledger, or is another instance's share. */
function heldBy(inFlight: number): string {
  if (inFlight === 0) {
    return "calls that are not settled yet. Try again in a moment.";
  }
  return inFlight === 1
    ? "1 call in flight. Try again when it has ended."
    : `${inFlight} calls in flight. Try again when they have ended.`;
}

const NAMES: Readonly<Record<string, string>> = {
  user: "User",
  team: "Team",
  member: "Team member",
  organization: "Organization",
  end_user: "End user",
  tag: "Tag",
};

/** `Team=… ` for everyone but the key itself, whose name its holder needs not. */
function prefixOf(entity: string): string {
  const [kind = "", id = ""] = split(entity);
  if (kind === "key") {
    return "";
  }
  if (kind === "key_model") {
    return `Model=${id.slice(id.indexOf("/") + 1)} `;
  }
  if (kind === "proxy") {
    return "Whole gateway: ";
  }
  return `${NAMES[kind]}=${id} `;
}

function ofWhom(entity: string): string {
  const prefix = prefixOf(entity).trim().replace(/:$/, "");
  return prefix === "" ? "" : ` for ${prefix}`;
}

function split(entity: string): readonly [string, string] {
  const colon = entity.indexOf(":");
  return [entity.slice(0, colon), entity.slice(colon + 1)];
}
