import { setTimeout as wait } from "node:timers/promises";

const LONGEST_MS = 25_000;

/** Waits until `look` gives something other than undefined or false; says what it waited for when that never comes. */
export async function waitFor<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const deadline = Date.now() + LONGEST_MS;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) {
      return seen;
    }
    if (Date.now() > deadline) {
      throw new Error(`waited in vain for ${what}`);
    }
    await wait(20);
  }
}
