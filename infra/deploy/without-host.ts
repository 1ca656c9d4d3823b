import type { HostName } from "../config/config.ts";
import type { Session } from "./session.ts";
import { hostOf, readState, type StateResource } from "./state.ts";

/**
 * The URNs of everything on one host, its provider included, for an operation while that host is away; with Postgres on it the
 * login roles too, which live in Postgres. What is excluded stays as it is, in the state too: the first `up` with the host back
 * finds nothing to mend. Taking the host out of the program instead would try to delete there.
 */
export async function onHost(
  { stack, hosts }: Pick<Session, "stack" | "hosts">,
  host: HostName,
): Promise<string[]> {
  const { resources } = await readState(stack);
  const found = resources.filter(
    (resource) =>
      hostOf(resource) === host ||
      (hosts?.placement.postgres === host && isOfPostgres(resource)),
  );
  if (found.length === 0) {
    throw new Error(
      `the state has no resources on host ${host.toUpperCase()}: a host can be excluded only after it has been deployed once.`,
    );
  }
  return found.map(({ urn }) => urn);
}

/** The provider that logs in to Postgres, and the roles it makes there. */
function isOfPostgres({ type, provider = "" }: StateResource): boolean {
  const providerType = "pulumi:providers:postgresql";
  return type === providerType || provider.includes(`${providerType}::`);
}
