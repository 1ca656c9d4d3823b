import { readVariable, type Environment } from "../../core/environment.ts";

/**
 * RESTORE_DATABASE_URL: the address of Postgres with its superuser, if the operator gave one. Parameters that it lacks are those of the
 * supervisor's own address of that server, which may accept TLS only.
 */
export function restoreAddress(
  env: Environment = process.env,
): string | undefined {
  const given = readVariable("RESTORE_DATABASE_URL", env);
  const own = readVariable("BACKUP_DATABASE_URL", env);
  if (
    given === undefined ||
    own === undefined ||
    !URL.canParse(given) ||
    !URL.canParse(own)
  ) {
    return given;
  }
  const address = new URL(given);
  const ours = new URL(own);
  if (serverOf(address) !== serverOf(ours)) {
    return given;
  }
  for (const [name, value] of ours.searchParams) {
    if (!address.searchParams.has(name)) {
      address.searchParams.set(name, value);
    }
  }
  return address.href;
}

function serverOf({ hostname, port }: URL): string {
  return `${hostname}:${port || "5432"}`;
}
