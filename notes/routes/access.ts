import type { DatabaseExchange } from "../http/exchange.ts";
import { Refusal } from "../refusal.ts";

/** Runs `work` with a signal that is also aborted when the login ends, or when `check` throws, which runs again at every change of the database. */
export async function whileAllowed(
  exchange: DatabaseExchange,
  check: () => void,
  work: (exchange: DatabaseExchange) => Promise<void>,
): Promise<void> {
  const { gone, database, login } = exchange;
  const allowed = new AbortController();
  const leave = (): void => allowed.abort(gone.reason);
  const checkAgain = (): void => {
    try {
      check();
    } catch (failure) {
      allowed.abort(failure);
    }
  };
  check();
  if (gone.aborted) {
    leave();
  }
  gone.addEventListener("abort", leave, { once: true });
  const stopChecking = database.onState(checkAgain);
  const stopWatching = login.onEnd(() =>
    allowed.abort(new Refusal("unauthorized", "This login has ended.")),
  );
  try {
    await work({ ...exchange, gone: allowed.signal });
  } finally {
    gone.removeEventListener("abort", leave);
    stopChecking();
    stopWatching();
  }
}
