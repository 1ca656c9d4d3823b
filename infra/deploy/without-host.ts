import type { HostName } from "../config/config-schema.ts";
import type { Session } from "./session.ts";
import { hostOf, readState, type StateResource } from "./state.ts";

/**
 * URNs of everything on one host, including its provider, for an operation while that host is down; with Postgres on it also the
 * login roles, which are in Postgres. Excluded resources are unchanged, also in the state: the first `up` after the host is back
 * has nothing to fix. Removing the host from the program would try to delete its resources.
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

/** The provider that logs in to Postgres, and its roles. */
function isOfPostgres({ type, provider = "" }: StateResource): boolean {
  const providerType = "pulumi:providers:postgresql";
  return type === providerType || provider.includes(`${providerType}::`);
}
