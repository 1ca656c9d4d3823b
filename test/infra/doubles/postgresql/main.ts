// Replaces the postgresql plugin where it is not available: see ../README.md.
import { serveDouble } from "../protocol.ts";
import type { Values } from "../protocol.ts";
import { roleDouble, type Login } from "./role.ts";

serveDouble("3.18.1", (configuration) => ({
  "postgresql:index/role:Role": roleDouble({
    host: String(configuration.host),
    port: Number(configuration.port),
    user: String(configuration.username),
    password: String(configuration.password),
    database: String(configuration.database),
    ssl: sslOf(configuration),
  }),
}));

/** With `sslinline`, lib/pq takes the authority as text; `verify-ca` does not compare the name. */
function sslOf({ sslmode, sslrootcert }: Values): Login["ssl"] {
  if (sslmode === "disable") {
    return false;
  }
  const ca = String(sslrootcert);
  return sslmode === "verify-full"
    ? { ca }
    : { ca, checkServerIdentity: () => undefined };
}
