import { setTimeout as sleep } from "node:timers/promises";

/** Polls `condition` until it returns something other than undefined or false; on timeout, the error names `what`. */
export async function waitFor<T>(
  what: string,
  condition: () => T | undefined | false | Promise<T | undefined | false>,
  { withinMs = 30_000, everyMs = 20 } = {},
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const result = await condition();
    if (result !== undefined && result !== false) {
      return result;
    }
    if (performance.now() > deadline) {
      throw new Error(`timed out waiting for ${what}`);
    }
    await sleep(everyMs);
  }
}
