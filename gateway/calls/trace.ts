import type { Gateway } from "../gateway.ts";
import { CallError } from "../http/errors.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { cooldownId } from "../routing/cooldowns.ts";
import type { Target } from "../routing/route.ts";
import type { Call } from "./call.ts";

/** What the span of a call shows on its way; without a trace nothing is done. */

export function traceAttempt(
  { trace }: Call,
  { deployment, group, pauseMs }: Target,
): void {
  trace?.attempt({ deployment, alias: group.alias, pauseMs });
}

/** Shows the cooldown that a failed attempt has started, or met. */
export function traceCooldown(
  { router }: Pick<Gateway, "router">,
  { trace }: Call,
  { deployment, group }: Target,
): void {
  if (trace === null) {
    return;
  }
  const cooling = router.cooldowns.cooling(cooldownId(group, deployment));
  if (cooling !== null) {
    trace.coolingDown(deployment.id, cooling.until);
  }
}

/** The headers of an attempt, with the trace's if it is continued at providers. */
export function withTraceContext(
  { trace }: Call,
  { id }: PricedDeployment,
  headers: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  return trace === null ? headers : { ...headers, ...trace.headers(id) };
}

/** Ends the trace of a call that was rejected, or failed before it had an outcome. */
export function traceRejection(call: Call | null, error: unknown): void {
  call?.trace?.endUnanswered(
    error instanceof CallError
      ? { type: error.kind, message: error.message }
      : { type: "internal", message: "internal error" },
  );
}
