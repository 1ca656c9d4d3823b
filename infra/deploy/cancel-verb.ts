import { readLock } from "./lock.ts";
import { end, findLeftoverPlugins } from "./processes.ts";
import type { Session } from "./session.ts";
import { dropPendingCreates } from "./state.ts";

/** Throws one sentence while the run that holds the lock is still running: two runs at a time would overwrite each other's state. */
export async function cancelVerb(session: Session): Promise<number> {
  const lock = await readLock(session);
  if (lock?.holder === "running") {
    throw new Error(
      `the run that locks the stack is still running (process ${lock.pid}); nothing was changed: wait for it to end, or end it with Ctrl-C or \`kill ${lock.pid}\`, then run cancel again.`,
    );
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
