import { createHash, pbkdf2Sync } from "node:crypto";

export interface CouchSettings {
  /** 32 hex digits that never change: clients derive their checkpoints from it. */
  readonly uuid: string;
  /** Signs session cookies. */
  readonly cookieSecret: string;
  readonly adminPassword: string;
}

const HASH_ITERATIONS = 50_000;

/**
 * The static ini of the notes server, for CouchDB 3.5 and the embedded store; only a rotated password is set over HTTP.
 * Any change of the text, comments included, replaces the container of a deployment.
 * It repeats settings under old section names: the plugin's checker falls back to them when a proxy hides the Server header.
 */
export function buildCouchIni(settings: CouchSettings): string {
  return `; Written by Hearth.
[couchdb]
single_node = true
max_document_size = 50000000
uuid = ${settings.uuid}

[cluster]
n = 1
q = 1

[chttpd]
bind_address = 0.0.0.0
port = 5984
require_valid_user = true
require_valid_user_except_for_up = true
enable_cors = true
max_http_request_size = 4294967296

[chttpd_auth]
require_valid_user = true
secret = ${settings.cookieSecret}

; For the embedded store's image: only containers of this network reach it, and the edge says whose request it passes on.
[hearth]
trusted_proxies = 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fc00::/7

[httpd]
enable_cors = true
WWW-Authenticate = Basic realm="couchdb"

[cors]
credentials = true
; No spaces: the client splits without trimming.
origins = app://obsidian.md,capacitor://localhost,http://localhost

[log]
level = warning

[admins]
admin = ${hashAdminPassword(settings.adminPassword, settings.uuid)}
`;
}

/**
 * CouchDB's format, `-pbkdf2:sha256-<64 hex>,<salt>,<iterations>` with the salt as ASCII text. Hashed here because the server
 * writes the hash of a plain password into a file that the next container does not have. The salt is derived, so that an
 * unchanged password gives an unchanged ini.
 */
export function hashAdminPassword(password: string, uuid: string): string {
  const salt = createHash("sha256")
    .update(`hearth:couchdb:${uuid}:${password}`)
    .digest("hex")
    .slice(0, 32);
  const key = pbkdf2Sync(password, salt, HASH_ITERATIONS, 32, "sha256");
  return `-pbkdf2:sha256-${key.toString("hex")},${salt},${HASH_ITERATIONS}`;
}
