import type { Runners } from "../runners/runners.ts";
import type { ModelGroup } from "./catalog.ts";
import { cooldownId, type Cooldowns } from "./cooldowns.ts";
import type { UsedUp } from "./provider-budgets.ts";

/** No deployment can take the call now. */
export interface NoTarget {
  readonly cause: "budget" | "cooldown" | "limit" | "queue" | "unreachable";
  /** Infinity: waiting does not help. */
  readonly retryAfterMs: number;
  readonly reason: string;
}

/** When the next probe may find a runner again. */
const GONE_RETRY_MS = 2_000;

/** null: no deployment is at a runner that is gone. */
export function goneOf(
  runners: Pick<Runners, "goneReason">,
  group: ModelGroup,
): NoTarget | null {
  const reasons = group.deployments.flatMap(
    (deployment) => runners.goneReason(deployment) ?? [],
  );
  const [reason] = reasons;
  return reason === undefined || reasons.length < group.deployments.length
    ? null
    : { cause: "unreachable", retryAfterMs: GONE_RETRY_MS, reason };
}

export function coolingOf(
  cooldowns: Pick<Cooldowns, "cooling">,
  group: ModelGroup,
): NoTarget {
  const coolingDown = group.deployments.flatMap((deployment) => {
    const cooling = cooldowns.cooling(cooldownId(group, deployment));
    return cooling === null
      ? []
      : [{ ...cooling, address: deployment.apiBase }];
  });
  const [soonest] = coolingDown.toSorted((a, b) => a.until - b.until);
  return {
    cause: "cooldown",
    retryAfterMs: Math.max(0, (soonest?.until ?? Date.now()) - Date.now()),
    reason:
      soonest === undefined ? "it has no deployments" : withAddress(soonest),
  };
}

/** "http://10.0.0.5/v1: overloaded"; a reason that begins with the address does not repeat it. */
function withAddress({
  address,
  reason,
}: {
  readonly address: string;
  readonly reason: string;
}): string {
  return reason.startsWith(address) ? reason : `${address}: ${reason}`;
}

export function usedUpOf(usedUp: readonly UsedUp[]): NoTarget {
  const resetsAt = Math.min(...usedUp.map((each) => each.resetsAt));
  return {
    cause: "budget",
    retryAfterMs: Math.max(0, resetsAt - Date.now()),
    reason: usedUp
      .map(
        ({ provider, budget }) =>
          `provider ${provider} has used up its budget of $ ${budget}`,
      )
      .join("; "),
  };
}
