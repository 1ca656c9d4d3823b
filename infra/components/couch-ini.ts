import { createHash } from "node:crypto";
import { buildCouchIni, hashCouchPassword } from "../../core/couchdb-ini.ts";

export interface CouchSettings {
  /** 32 hex digits that never change. */
  readonly uuid: string;
  /** Signs session cookies. */
  readonly cookieSecret: string;
  readonly adminPassword: string;
}

/** The ini in the notes server's container. */
export function containerIni(settings: CouchSettings): string {
  return buildCouchIni({
    header: "Written by Hearth.",
    uuid: settings.uuid,
    cookieSecret: settings.cookieSecret,
    bindAddress: "0.0.0.0",
    port: 5984,
    trustedProxiesNote:
      "For the embedded store's image: only containers of this network reach it, and the edge says whose request it passes on.",
    trustedProxies: "10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fc00::/7",
    adminHash: hashAdminPassword(settings.adminPassword, settings.uuid),
  });
}

/**
 * Hashed here because the server writes the hash of a plain password into a file that the next container does not have.
 * The salt is derived, so that an unchanged password gives an unchanged ini.
 */
export function hashAdminPassword(password: string, uuid: string): string {
  const salt = createHash("sha256")
    .update(`hearth:couchdb:${uuid}:${password}`)
    .digest("hex")
    .slice(0, 32);
  return hashCouchPassword(password, salt);
}
