import { isWithin } from "../../core/clock-jumps.ts";
import type { HealRule } from "../checks/kinds/every-check.ts";

type HealingDecision =
  | { readonly kind: "heal" }
  | { readonly kind: "wait" }
  | { readonly kind: "gave-up" };

/**
 * Whether a service may be restarted now, by the times of earlier restarts (milliseconds since 1970): at most `max` times in
 * `per`, with a cooldown that doubles each time.
 */
export function decideHealing(
  rule: HealRule,
  earlier: readonly number[],
  now: number,
): HealingDecision {
  const recent = earlier.filter((at) => isWithin(at, rule.per, now));
  if (recent.length >= rule.max) {
    return { kind: "gave-up" };
  }
  const last = recent.at(-1);
  if (last === undefined) {
    return { kind: "heal" };
  }
  const cooldown = rule.cooldown * 2 ** (recent.length - 1);
  return isWithin(last, cooldown, now) ? { kind: "wait" } : { kind: "heal" };
}
