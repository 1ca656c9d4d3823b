import type { Caller } from "../access/callers.ts";

/**
 * Whose stored responses a caller reaches: those of its user in the same team, whichever key created them. A key without a user
 * reaches only its own. JSON, so that no name can imitate another owner's.
 */
export function ownerOf(caller: Caller): string {
  if (caller.kind === "master") {
    return JSON.stringify(["master"]);
  }
  const { userId, team, token } = caller;
  return JSON.stringify(
    userId === null ? ["key", token] : ["user", userId, team?.id ?? null],
  );
}
