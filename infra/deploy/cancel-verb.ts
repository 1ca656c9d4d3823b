import { end, findLeftoverPlugins } from "./processes.ts";
import type { Session } from "./session.ts";
import { dropPendingCreates } from "./state.ts";

export async function cancelVerb(session: Session): Promise<number> {
  await session.stack.cancel();
  const left = await findLeftoverPlugins();
  end(left);
  await dropPendingCreates(session);
  session.say(
    `Stack unlocked${left.length === 0 ? "" : `; ended ${left.map(({ program, pid }) => `${program} (process ${pid})`).join(", ")}`}. Run \`npm run deploy -- up\` to continue.`,
  );
  return 0;
}
