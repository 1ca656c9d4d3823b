import { isWithin } from "../moments.ts";
import type { Runtime, ServiceView } from "../runtimes/runtime.ts";
import type { Check } from "./config.ts";

/** A deployment replaces a container in less. */
const REPLACED_WITHIN_MS = 120_000;
/** What has just been started, or has lost what it depends on, needs no longer to find itself. */
export const USUAL_GRACE_MS = 30_000;

/** The service that a check speaks about. */
export function serviceOf(check: Check): string {
  return (
    check.service ??
    check.heal?.restart ??
    (check.kind === "container" ? check.container : check.name)
  );
}

/**
 * Why the failures of a check do not count, as far as its service goes: it is being started or replaced, or has just been
 * started. `failingSince` limits that: what takes longer is down. Undefined when they count.
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
  // Named in the check, not here: a container of the other host, which may be replaced as well.
  return check.service !== undefined && runtime.list().some(isContainer)
    ? `${service} is not on this host and may be being replaced`
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
      return `${name} is ${state}`;
    case "running":
      return isWithin(since, grace, now)
        ? `${name} has just been started`
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
