import { readState, hostOf } from "./state.ts";
import type { Session } from "./session.ts";

/**
 * The URNs of everything on one host, its provider included, for an operation while that host is away. What is excluded stays
 * as it is, in the state too: the first `up` with the host back finds nothing to mend. Taking the host out of the program
 * instead would try to delete there.
 */
export async function onHost(
  { stack }: Session,
  host: "a" | "b",
): Promise<string[]> {
  const { resources } = await readState(stack);
  const found = resources
    .filter((resource) => hostOf(resource) === host)
    .map(({ urn }) => urn);
  if (found.length === 0)
    throw new Error(
      `the state knows nothing on host ${host.toUpperCase()}: it must have been deployed once before it can be left out.`,
    );
  return found;
}
