import type { HearthConfig, HostName } from "../config/config.ts";
import { POSTGRES_AT_VARIABLE } from "../config/program-config.ts";
import { readSettings, type Session } from "./session.ts";
import { nameOf, readState } from "./state.ts";

/**
 * `refresh` and `destroy` reach hosts and Postgres as the state remembers from the last `up`; where the configuration, or a
 * tunnel, says otherwise now, the state is told first. `without` is left out: a host that is away cannot be asked.
 */
export async function renewProviders(
  session: Session,
  without?: HostName,
): Promise<void> {
  const { stack, options } = session;
  const wanted = addressesOf(await readSettings(session), without);
  const { resources } = await readState(stack);
  const outdated = resources.filter(({ urn, inputs }) => {
    const address = wanted[nameOf(urn)];
    return address !== undefined && address !== addressIn(inputs ?? {});
  });
  if (outdated.length > 0) {
    await stack.up({ ...options, target: outdated.map(({ urn }) => urn) });
  }
}

/** Providers by name, each with where it reaches what it looks after. */
function addressesOf(
  { hosts, placement: { postgres }, ports, postgresAt }: HearthConfig,
  without: HostName | undefined,
): Readonly<Record<string, string>> {
  const login =
    process.env[POSTGRES_AT_VARIABLE] ??
    addressIn(
      postgresAt ?? { host: hosts[postgres].address, port: ports.postgres },
    );
  return {
    ...(without === "a" ? {} : { "host-a": dockerAddress(hosts.a) }),
    ...(without === "b" ? {} : { "host-b": dockerAddress(hosts.b) }),
    ...(without === postgres ? {} : { "postgres-login": login }),
  };
}

function dockerAddress({
  docker: host,
  sshOpts,
}: HearthConfig["hosts"][HostName]): string {
  return addressIn(host.startsWith("ssh://") ? { host, sshOpts } : { host });
}

/** Docker's providers have an endpoint as their host, and options of ssh, which the state has as JSON; Postgres' a port. */
function addressIn({
  host,
  port,
  sshOpts,
}: {
  readonly host?: unknown;
  readonly port?: unknown;
  readonly sshOpts?: unknown;
}): string {
  const options =
    typeof sshOpts === "string" ? sshOpts : JSON.stringify(sshOpts);
  const address =
    port === undefined ? String(host) : `${String(host)}:${String(port)}`;
  return options === undefined ? address : `${address} ${options}`;
}
