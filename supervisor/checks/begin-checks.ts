import type { History } from "../history/history.ts";
import type { Books } from "./books.ts";
import type { CheckAlarms } from "./check-alarms.ts";
import type { Check } from "./config.ts";
import { beginWatched, type AllWatched } from "./watched.ts";

/**
 * All checks of the configuration as they begin, with what an earlier supervisor knew of them. What it knew of checks that are
 * gone, or are of another kind now, is forgotten, their alarms with it.
 */
export function beginChecks({
  checks,
  books,
  alarms,
  history,
  now,
}: {
  readonly checks: readonly Check[];
  readonly books: Books;
  readonly alarms: CheckAlarms;
  readonly history: History;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}): AllWatched {
  const recalled = books.recall();
  const all: AllWatched = new Map(
    checks.map((check) => [
      check.name,
      beginWatched(check, recalled.get(check.name), now()),
    ]),
  );
  for (const [name, { kind, memory }] of recalled) {
    const check = all.get(name)?.check;
    if (check?.kind === kind) {
      continue;
    }
    alarms.withdraw(name);
    books.forget(name);
    // Else what was down then would be down for ever.
    if (memory.state === "paused") {
      continue;
    }
    const [state, why] =
      check === undefined
        ? ["paused", "it is not in the configuration any more"]
        : ["new", `it is a check of another kind now (${check.kind})`];
    history.checkChanged(name, memory.state, state, why);
  }
  for (const watched of all.values()) {
    books.remember(watched);
  }
  return all;
}
