import type { HearthConfig, HostName } from "../config/config-schema.ts";
import { POSTGRES_AT_VARIABLE } from "../config/program-config.ts";
import { readSettings, type Session } from "./session.ts";
import { nameOf, readState } from "./state.ts";

/**
 * `refresh` and `destroy` use the addresses of hosts and Postgres in the state, from the last `up`; if the configuration, or a
 * tunnel, changed them, the state is updated first. `without` is excluded: a host that is down cannot be reached.
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

/** Providers by name, each with the address it connects to. */
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

/** Docker's providers have an endpoint as host, and ssh options, which are JSON in the state; Postgres' provider has a port. */
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
