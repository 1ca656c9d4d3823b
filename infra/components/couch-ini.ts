import { buildCouchIni, hashAdminPassword } from "../../core/couchdb-ini.ts";

interface CouchSettings {
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
