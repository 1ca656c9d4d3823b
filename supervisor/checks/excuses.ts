import { stateWord } from "../../core/words.ts";
import { isWithin } from "../../core/clock-jumps.ts";
import type { Runtime, ServiceView } from "../runtimes/runtime.ts";
import type { Check } from "./config.ts";

/** A deployment replaces a container faster. */
const REPLACED_WITHIN_MS = 120_000;
/** Time to become healthy after a start, or after a dependency has recovered. */
export const USUAL_GRACE_MS = 30_000;

/** The service that a check belongs to. */
export function serviceOf(check: Check): string {
  return (
    check.service ??
    check.heal?.restart ??
    (check.kind === "container" ? check.container : check.name)
  );
}

/**
 * Why failures of a check do not count because of the state of its service: it is being started or replaced, or was just
 * started. `failingSince` limits this: a service that takes longer is down. Undefined if they count.
 */
export function excuseOf(
  check: Check,
  runtime: Runtime | undefined,
  failingSince: number,
  now: number,
): string | undefined {
  if (runtime === undefined) {
    return undefined;
  }
  const service = serviceOf(check);
  const grace = check.heal?.grace ?? USUAL_GRACE_MS;
  if (!isWithin(failingSince, Math.max(REPLACED_WITHIN_MS, grace), now)) {
    return undefined;
  }
  const view = runtime.inspect(service);
  if (view !== undefined) {
    return excuseOfService(view, grace, now);
  }
  // Named by the check but not here: a container of the other host, which a deployment may be replacing.
  return check.service !== undefined && runtime.list().some(isContainer)
    ? `${service} is not on this host; a deployment may be replacing it`
    : undefined;
}

function excuseOfService(
  { name, state, since }: ServiceView,
  grace: number,
  now: number,
): string | undefined {
  switch (state) {
    case "waiting":
    case "starting":
    case "backing-off":
    case "stopping":
      return `${name} is ${stateWord(state)}`;
    case "running":
      return isWithin(since, grace, now)
        ? `${name} was just started`
        : undefined;
    case "gave-up":
    case "stopped":
    case "ended":
    case "absent":
    case "unknown":
      return undefined;
  }
}

function isContainer({ container }: ServiceView): boolean {
  return container !== undefined;
}
