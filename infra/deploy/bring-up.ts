import type { OpMap, UpOptions } from "@pulumi/pulumi/automation/stack.js";
import { followPlacement } from "./placement.ts";
import { forgetRemoved } from "./removed.ts";
import type { Session } from "./session.ts";
import { dropPendingCreates, readState } from "./state.ts";

/**
 * What `--refresh` means: each resource is looked at when the program comes to it, through the program's own addresses. The
 * engine's usual way, all of them first, would ask Postgres for its roles before its container is back, and ask at the
 * addresses of the last `up`, where a host that was replaced is no more.
 */
export const lookFirst = { refresh: true, runProgram: true } as const;

/** Brings the hosts to what program and configuration say, after what an interrupted run left in the state is cleared. */
export async function bringUp(
  session: Session,
  options: Partial<UpOptions> = {},
): Promise<OpMap | undefined> {
  // One reading for all three: what each changes, the others do not use.
  const state = await readState(session.stack);
  await followPlacement(session, state);
  await dropPendingCreates(session, state);
  // With a look at everything the engine finds them itself.
  if (options.refresh !== true) {
    await forgetRemoved(session, options.exclude, state);
  }
  const { summary } = await session.stack.up({
    ...session.options,
    ...options,
  });
  return summary.resourceChanges;
}
