import { setTimeout as sleep } from "node:timers/promises";
import { readLock } from "./lock.ts";
import { end, findLeftoverPlugins } from "./processes.ts";
import type { Session } from "./session.ts";
import { dropPendingCreates } from "./state.ts";

/** After Ctrl-C, or without its program, an engine ends a moment later. */
const ENDS_WITHIN_MS = 15_000;

/**
 * Throws one sentence if the run that holds the lock is still running after `withinMs`: two runs at a time would overwrite each other's
 * state.
 */
export async function cancelVerb(
  session: Session,
  withinMs = ENDS_WITHIN_MS,
): Promise<number> {
  const deadline = performance.now() + withinMs;
  let lock = await readLock(session);
  while (lock?.holder === "running") {
    if (performance.now() >= deadline) {
      throw new Error(
        `the run that locks the stack is still running (process ${lock.pid}); nothing was changed: wait for it to end, or end it with Ctrl-C or \`kill ${lock.pid}\`, then run cancel again.`,
      );
    }
    await sleep(500);
    lock = await readLock(session);
  }
  await session.stack.cancel();
  const left = await findLeftoverPlugins();
  end(left);
  await dropPendingCreates(session);
  session.say(
    `Stack unlocked${left.length === 0 ? "" : `; ended ${left.map(({ program, pid }) => `${program} (process ${pid})`).join(", ")}`}. Run \`npm run deploy -- up\` to continue.`,
  );
  return 0;
}
