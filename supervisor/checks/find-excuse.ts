import type { Runtime } from "../runtimes/runtime.ts";
import { excuseOf, serviceOf, USUAL_GRACE_MS } from "./excuses.ts";
import {
  blockerOf,
  dependenciesOf,
  recentlyRecovered,
  type AllWatched,
  type Watched,
} from "./watched.ts";

/** Why a failure of a check does not count; undefined if it does. Before a check goes down, its service and dependencies are probed. */
export async function findExcuse(
  watched: Watched,
  context: {
    readonly all: AllWatched;
    readonly runtime: Runtime | undefined;
    readonly now: () => number;
    readonly probe: (watched: Watched) => Promise<void>;
  },
): Promise<string | undefined> {
  const { all, runtime, now, probe } = context;
  const { check, failingSince = now(), latest, memory } = watched;
  const aboutToFall =
    memory.state !== "down" && memory.failures + 1 >= check.fail_after;
  // The runtime's view may be some seconds old: Docker may be restarting a crashed container already.
  if (aboutToFall) {
    await runtime?.probe(serviceOf(check)).catch(() => {});
  }
  const excuse =
    excuseOf(check, runtime, failingSince, now()) ??
    excuseOfDependencies(watched, all, now());
  if (excuse !== undefined || !aboutToFall) {
    return excuse;
  }
  // A check that is probed more often than its dependency must not be blamed for the dependency's failure.
  await Promise.all(
    dependenciesOf(watched, all)
      .filter((each) => (each.latest?.at ?? 0) < (latest?.at ?? 0))
      .map(probe),
  );
  return excuseOfDependencies(watched, all, now());
}

function excuseOfDependencies(
  watched: Watched,
  all: AllWatched,
  now: number,
): string | undefined {
  const blocker = blockerOf(watched, all);
  if (blocker !== null) {
    return `waiting for ${blocker}`;
  }
  const back = recentlyRecovered(watched, all, USUAL_GRACE_MS, now);
  return back === null ? undefined : `${back} has just recovered`;
}
