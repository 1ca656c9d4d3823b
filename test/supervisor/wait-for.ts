import { setTimeout as wait } from "node:timers/promises";

const MAX_WAIT_MS = 25_000;

/** Polls `condition` until it returns something other than undefined or false; on timeout, the error names `what`. */
export async function waitFor<T>(
  what: string,
  condition: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const deadline = Date.now() + MAX_WAIT_MS;
  for (;;) {
    const result = await condition();
    if (result !== undefined && result !== false) {
      return result;
    }
    if (Date.now() > deadline) {
      throw new Error(`timed out waiting for ${what}`);
    }
    await wait(20);
  }
}
