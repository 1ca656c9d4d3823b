import type { OpMap } from "@pulumi/pulumi/automation/stack.js";
import type { Session } from "./session.ts";

/** Prints how many resources each operation changed; returns the exit code. */
export function reportChanges(
  session: Session,
  changes: OpMap | undefined,
): number {
  const parts = Object.entries(changes ?? {}).map(
    ([operation, count]) => `${count} ${operation}`,
  );
  session.say(parts.length === 0 ? "no changes" : parts.join(", "));
  return 0;
}
