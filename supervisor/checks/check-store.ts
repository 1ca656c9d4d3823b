import type { DatabaseSync } from "node:sqlite";
import { openCheckHistory, type CheckHistory } from "./check-history.ts";
import type { Watched } from "./watched.ts";

/** The persistent state of checks. A failing disk is reported once and does not stop the checks. */
export type CheckStore = Pick<
  CheckHistory,
  "recall" | "forget" | "measured" | "pings" | "ping"
> & {
  /** Saves the state of a check across restarts. */
  readonly remember: (watched: Watched) => void;
  /** Records the latest result; `counted` is false if it does not count towards availability. */
  readonly record: (watched: Watched, counted: boolean) => void;
};

export function openCheckStore(
  db: DatabaseSync,
  onError: (error: unknown) => void,
): CheckStore {
  const history = openCheckHistory(db);
  let failing = false;

  function safely(write: () => void): void {
    try {
      write();
      failing = false;
    } catch (error) {
      if (!failing) {
        onError(error);
      }
      failing = true;
    }
  }

  return {
    ...history,
    forget: (check) => safely(() => history.forget(check)),
    remember: ({ check, memory, latest, paused, watchedSince }) => {
      const { name, kind } = check;
      safely(() =>
        history.remember(name, { kind, memory, latest, paused, watchedSince }),
      );
    },
    record: ({ check, latest }, counted) => {
      if (latest === null) {
        return;
      }
      const coversMs = check.every + check.timeout;
      safely(() => history.record(check.name, latest, counted, coversMs));
    },
  };
}
