import type { OpMap, UpOptions } from "@pulumi/pulumi/automation/stack.js";
import { followPlacement } from "./placement.ts";
import { forgetRemoved } from "./removed.ts";
import type { Session } from "./session.ts";
import { dropPendingCreates, readState } from "./state.ts";

/**
 * Options of `--refresh`: each resource is read when the program reaches it, through the program's own addresses. The
 * engine's default, reading all of them first, would query Postgres for its roles before its container is back, and use the
 * addresses of the last `up`, at which a replaced host no longer exists.
 */
export const refreshFirst = { refresh: true, runProgram: true } as const;

/** Applies program and configuration to the hosts, after removing the leftovers of an interrupted run from the state. */
export async function bringUp(
  session: Session,
  options: Partial<UpOptions> = {},
): Promise<OpMap | undefined> {
  // Read once for all three: none uses what the others change.
  const state = await readState(session.stack);
  await followPlacement(session, state);
  await dropPendingCreates(session, state);
  // With a refresh the engine finds them itself.
  if (options.refresh !== true) {
    await forgetRemoved(session, options.exclude, state);
  }
  const { summary } = await session.stack.up({
    ...session.options,
    ...options,
  });
  return summary.resourceChanges;
}
