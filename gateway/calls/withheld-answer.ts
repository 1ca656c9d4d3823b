import type { Gateway } from "../gateway.ts";
import { UpstreamFailure } from "../providers/failure.ts";
import type { Route } from "../routing/route.ts";
import { usageOf } from "../tokens/usage.ts";
import type { Attempt } from "./attempt.ts";
import type { Call } from "./call.ts";
import { nextTarget } from "./choose-deployment.ts";
import {
  noteFurther,
  noteOwed,
  recordFailed,
  type FailurePorts,
} from "./failed-attempt.ts";
import type { AnsweredAttempt, Chosen, Failed } from "./hedge.ts";
import { countLeft } from "./litellm-counts.ts";
import type { SlotPorts } from "./take-slot.ts";
import type { WaitingClient } from "./waiting-client.ts";

/**
 * Where `content_policy_fallbacks` lead a call instead of a whole answer whose content was withheld, which is charged besides the
 * next; null: it has content, or no fallback can take the call, and it is the answer.
 */
export async function insteadOfWithheld(
  gateway: SlotPorts &
    FailurePorts &
    Pick<Gateway, "catalog" | "journal" | "router">,
  call: Call,
  answered: AnsweredAttempt,
  {
    route,
    attempts,
    client,
  }: {
    readonly route: Route;
    readonly attempts: Attempt[];
    readonly client: WaitingClient | null;
  },
): Promise<Chosen | null> {
  const withheld = route.avoidsContentFilter
    ? withheldAt(gateway, answered)
    : null;
  if (withheld === null) {
    return null;
  }
  // The fallback may be at the same runner.
  answered.slot?.release();
  const owedBefore = gateway.activeCalls.estimatedCost(call.id);
  noteOwed(gateway, withheld);
  const next = await nextTarget(gateway, call, route, withheld, client);
  if (next === null) {
    gateway.activeCalls.setEstimatedCost(call.id, owedBefore);
    return null;
  }
  recordFailed(gateway, call, withheld, attempts);
  countLeft(gateway, call, withheld.target, next.target, attempts);
  await noteFurther(gateway, call, next);
  return next;
}

/** An answer as the rejection of its content; null: it is none. */
function withheldAt(
  { tokens }: Pick<Gateway, "tokens">,
  { target, sent, slot, answer }: AnsweredAttempt,
): Failed | null {
  if (answer.kind !== "whole") {
    return null;
  }
  const { facts } = answer.translation.answer(answer.body);
  if (facts.isFiltered !== true) {
    return null;
  }
  const { deployment } = target;
  const failure = new UpstreamFailure(
    400,
    `${deployment.apiBase} withheld its answer (content_filter)`,
  );
  failure.usage = usageOf(tokens, sent.call, deployment, facts);
  return { target, sent, slot, failure };
}
