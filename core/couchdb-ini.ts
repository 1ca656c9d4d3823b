import { hash, pbkdf2Sync, randomBytes } from "node:crypto";

interface CouchIniOptions {
  /** The first line, a comment without its semicolon. */
  readonly header: string;
  /** 32 hex digits that never change: clients derive their checkpoints from it. */
  readonly uuid: string;
  /** Signs session cookies. */
  readonly cookieSecret: string;
  readonly bindAddress: string;
  readonly port: number;
  /** Proxies whose X-Forwarded-For the embedded store trusts: addresses and ranges. */
  readonly trustedProxies: string;
  /** A comment line above the trusted proxies. */
  readonly trustedProxiesNote?: string;
  /** Of {@link hashCouchPassword}. */
  readonly adminHash: string;
}

const HASH_ITERATIONS = 50_000;

/**
 * The static ini of the notes server, for CouchDB 3.5 and the embedded store; only a rotated password is set over HTTP.
 * Any change of the text, comments included, replaces the container of a deployment.
 * It repeats settings under old section names: the plugin's checker falls back to them when a proxy hides the Server header.
 */
export function buildCouchIni(options: CouchIniOptions): string {
  const note = options.trustedProxiesNote;
  return `; ${options.header}
[couchdb]
single_node = true
max_document_size = 50000000
uuid = ${options.uuid}

[cluster]
n = 1
q = 1

[chttpd]
bind_address = ${options.bindAddress}
port = ${options.port}
require_valid_user = true
require_valid_user_except_for_up = true
enable_cors = true
max_http_request_size = 4294967296

[chttpd_auth]
require_valid_user = true
secret = ${options.cookieSecret}

${note === undefined ? "" : `; ${note}\n`}[hearth]
trusted_proxies = ${options.trustedProxies}

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
admin = ${options.adminHash}
`;
}

/** CouchDB's form: `-pbkdf2:sha256-<64 hex>,<salt>,<iterations>`, the salt as ASCII text. */
export function hashCouchPassword(
  password: string,
  salt: string = randomBytes(16).toString("hex"),
  iterations: number = HASH_ITERATIONS,
): string {
  const key = pbkdf2Sync(password, salt, iterations, 32, "sha256");
  return `-pbkdf2:sha256-${key.toString("hex")},${salt},${iterations}`;
}

/**
 * Hashed here because the server writes the hash of a plain password into a file that the next container does not have.
 * The salt is derived, so that an unchanged password gives an unchanged ini.
 */
export function hashAdminPassword(password: string, uuid: string): string {
  const salt = hash("sha256", `hearth:couchdb:${uuid}:${password}`).slice(
    0,
    32,
  );
  return hashCouchPassword(password, salt);
}
