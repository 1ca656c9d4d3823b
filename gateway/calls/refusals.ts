import type { Refusal } from "../limits/limits.ts";
import { dollarsFromNanos } from "../pricing/money.ts";
import { CallError } from "../http/errors.ts";

/** The budget of the payer that rejects a call. */
export interface RejectingBudget {
  /** As it was set; null: there is none. */
  readonly dollars: number | null;
  /** Ms since the epoch; Infinity: never. */
  readonly resetsAt: number;
}

/** The error for a call that a limit rejects: which limit, whose, and when to retry. */
export function rejectionError(
  refusal: Refusal,
  budget: RejectingBudget,
): CallError {
  switch (refusal.kind) {
    case "budget_exceeded": {
      const max = budget.dollars ?? dollarsFromNanos(refusal.budget);
      return new CallError(
        "budget_exceeded",
        // LiteLLM's text, which its clients read figures from: nothing may follow the last one.
        `Budget has been exceeded! ${prefixOf(refusal.entity)}Current cost: ${dollarsFromNanos(refusal.spend)}, Max budget: ${max}`,
        {
          headers: {
            "x-should-retry": "false",
            ...(budget.resetsAt === Infinity || refusal.budget === 0
              ? {}
              : {
                  "x-hearth-budget-reset-at": new Date(
                    budget.resetsAt,
                  ).toISOString(),
                }),
          },
        },
      );
    }
    case "estimate_too_large":
      return new CallError(
        "budget_exceeded",
        `The maximum cost of this call exceeds the remaining budget! ${prefixOf(refusal.entity)}It may cost ${dollarsFromNanos(refusal.estimate)}, remaining: ${dollarsFromNanos(refusal.remaining)}. Send a smaller max_tokens.`,
        { headers: { "x-should-retry": "false" } },
      );
    case "budget_held":
      return new CallError(
        "budget_held",
        `The rest of the budget${ofWhom(refusal.entity)} is reserved by ${reservedBy(refusal.inFlight)}`,
        { headers: { "retry-after": "1" } },
      );
    case "rate_limited": {
      const seconds = Math.max(1, Math.ceil(refusal.resetInMs / 1_000));
      const limit = limitWords(refusal.limit, refusal.allowed);
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

function limitWords(
  limit: "requests" | "tokens" | "parallel",
  allowed: number,
): string {
  const s = allowed === 1 ? "" : "s";
  return {
    requests: `request${s} per minute`,
    tokens: `token${s} per minute`,
    parallel: `parallel request${s}`,
  }[limit];
}

/** Without calls: the reservation is being settled, or is another instance's share. */
function reservedBy(inFlight: number): string {
  if (inFlight === 0) {
    return "calls that are being settled. Try again in a moment.";
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

/** `Team=… `, and so on; empty for the key itself. */
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
