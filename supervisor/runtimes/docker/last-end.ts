import type { ServiceView } from "../runtime.ts";

/**
 * The view, in which `oomKilled` says why the container ended before it was restarted: Docker 26 resets it with every start
 * (20.10 did not), and shows it before that for only 100 ms. The latest known state and the engine's events remember it.
 */
export async function withLastEnd(
  now: ServiceView,
  before: ServiceView | undefined,
  hadOomEvent: (since: number, until: number) => Promise<boolean>,
): Promise<ServiceView> {
  const facts = now.container;
  const earlier = before?.container;
  // Without a process, the facts describe the end itself.
  const isTold = now.pid === null || facts?.oomKilled !== false;
  if (isTold || before === undefined || earlier?.id !== facts.id) {
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

/** While a container runs, it tells the end before. */
export function endedOutOfMemory({ state, container }: ServiceView): boolean {
  return state === "backing-off" && container?.oomKilled === true;
}
