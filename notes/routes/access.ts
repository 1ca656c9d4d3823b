import type { DatabaseExchange, Exchange } from "../http/exchange.ts";
import { Refusal } from "../refusal.ts";

const ended = (): Refusal =>
  new Refusal("unauthorized", "This login has ended.");

/** Throws 401 if the login of a request has ended by now. */
export async function requireCurrent({ login }: Exchange): Promise<void> {
  if (!(await login.isCurrent())) {
    throw ended();
  }
}

/**
 * Runs `work` with a signal that is also aborted when the login ends, or when `check` throws, which runs again at every change of the
 * database. Throws 401 if the login has already ended.
 */
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
  const stopWatching = login.onEnd(() => allowed.abort(ended()));
  try {
    // The login may have ended before it was watched: while the password was checked or the database opened.
    await requireCurrent(exchange);
    await work({ ...exchange, gone: allowed.signal });
  } finally {
    gone.removeEventListener("abort", leave);
    stopChecking();
    stopWatching();
  }
}
