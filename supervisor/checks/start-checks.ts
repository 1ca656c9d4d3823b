import type { History } from "../history/history.ts";
import type { CheckStore } from "./check-store.ts";
import type { CheckAlarms } from "./check-alarms.ts";
import type { Check } from "./config.ts";
import { startWatched, type AllWatched } from "./watched.ts";

/**
 * All configured checks with the state that the previous supervisor saved. The state and alarms of checks that were removed,
 * or are of another kind now, are deleted.
 */
export function startChecks({
  checks,
  store,
  alarms,
  history,
  now,
}: {
  readonly checks: readonly Check[];
  readonly store: CheckStore;
  readonly alarms: CheckAlarms;
  readonly history: History;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}): AllWatched {
  const recalled = store.recall();
  const all: AllWatched = new Map(
    checks.map((check) => [
      check.name,
      startWatched(check, recalled.get(check.name), now()),
    ]),
  );
  for (const [name, { kind, memory }] of recalled) {
    const check = all.get(name)?.check;
    if (check?.kind === kind) {
      continue;
    }
    alarms.withdraw(name);
    store.forget(name);
    // Otherwise a check that was down would be down forever.
    if (memory.state === "paused") {
      continue;
    }
    const [state, why] =
      check === undefined
        ? ["paused", "removed from the configuration"]
        : ["new", `changed to kind ${check.kind}`];
    history.checkChanged(name, memory.state, state, why);
  }
  for (const watched of all.values()) {
    store.remember(watched);
  }
  return all;
}
