import type { ServiceView } from "../runtime.ts";

/**
 * The view with an `oomKilled` that describes the last end, also after a restart: Docker 26 resets it at each start (20.10 did not),
 * after about 100 ms. The latest known state and the engine's events still contain it.
 */
export async function withLastEnd(
  now: ServiceView,
  before: ServiceView | undefined,
  hadOomEvent: (since: number, until: number) => Promise<boolean>,
): Promise<ServiceView> {
  const facts = now.container;
  const earlier = before?.container;
  // Without a process, the facts describe the end itself.
  const isKnown = now.pid === null || facts?.oomKilled !== false;
  if (isKnown || before === undefined || earlier?.id !== facts.id) {
    return now;
  }
  const oomKilled =
    earlier.startedAt === facts.startedAt
      ? earlier.oomKilled
      : wasRestartedByDocker(before, now) &&
        (endedOutOfMemory(before) ||
          (await hadOomEvent(earlier.startedAt ?? 0, facts.startedAt ?? 0)));
  return { ...now, container: { ...facts, oomKilled } };
}

/** Docker counts a restart when the process ends; a probe may see this before the new start. */
export function wasRestartedByDocker(
  before: ServiceView,
  now: ServiceView,
): boolean {
  return before.state === "backing-off" || now.restarts > before.restarts;
}

/** Only between its end and the next start: later, `oomKilled` describes an earlier end. */
export function endedOutOfMemory({ state, container }: ServiceView): boolean {
  return state === "backing-off" && container?.oomKilled === true;
}
