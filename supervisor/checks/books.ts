import type { DatabaseSync } from "node:sqlite";
import { openCheckHistory, type CheckHistory } from "./check-history.ts";
import type { Watched } from "./watched.ts";

/** What the watch writes and reads of its checks; what cannot be written is said once, and watching goes on. */
export type Books = Pick<
  CheckHistory,
  "recall" | "forget" | "measured" | "pings" | "ping"
> & {
  /** Keeps what a check must still know after a restart. */
  readonly remember: (watched: Watched) => void;
  /** Notes what the latest look saw; `counted` is false when it does not speak for or against the check. */
  readonly record: (watched: Watched, counted: boolean) => void;
};

export function openBooks(
  db: DatabaseSync,
  onError: (error: unknown) => void,
): Books {
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
