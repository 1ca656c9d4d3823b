import { pbkdf2Sync, randomBytes, timingSafeEqual } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { answersOk } from "../supervisor/checks/http-get.ts";
import { writeDurably } from "../core/durable-file.ts";
import { needFreePort } from "../supervisor/runtimes/process/ports.ts";
import type { ServiceSpec } from "../supervisor/runtimes/process/service-spec.ts";
import type { Home } from "../supervisor/home/home.ts";
import { explainHearth, plainEnvironment } from "./node-program.ts";
import type { Secrets } from "../supervisor/home/secrets.ts";

const HASH_ITERATIONS = 50_000;

/** The embedded notes store, on loopback. */
export function notesService(
  home: Home,
  port: number,
  secrets: Secrets,
): ServiceSpec {
  const address = `http://127.0.0.1:${port}`;
  return {
    name: "notes",
    address,
    port,
    needs: [],
    uses: [],
    prepare: async () => {
      writeNotesIni(home, port, secrets);
      await needFreePort(port, "notes", "HEARTH_NOTES_PORT");
    },
    plan: () => ({
      file: process.execPath,
      args: [
        join(home.project, "notes", "main.ts"),
        "--ini",
        home.notesIni,
        "--port",
        String(port),
      ],
      cwd: home.checkout,
      env: { ...plainEnvironment(home), NOTES_DIR: home.notes },
    }),
    // Without credentials: wrong ones would lock out this address.
    probe: (signal) => answersOk(`${address}/_up`, signal),
    afterUp: async () => {},
    startWithinMs: 30_000,
    stopSignal: "SIGTERM",
    stopWithinMs: 12_000,
    haltSignal: "SIGKILL",
    explain: explainHearth,
  };
}

/** Writes the settings at the first start, later only when port or password changed; id and secret never change. */
function writeNotesIni(home: Home, port: number, secrets: Secrets): void {
  const known = existsSync(home.notesIni)
    ? readFileSync(home.notesIni, "utf8")
    : "";
  const hash = valueOf(known, "admin");
  const text = buildNotesIni({
    port,
    uuid: valueOf(known, "uuid") ?? randomBytes(16).toString("hex"),
    secret: valueOf(known, "secret") ?? randomBytes(32).toString("hex"),
    trustedProxies: valueOf(known, "trusted_proxies") ?? "",
    adminHash:
      hash !== undefined && fits(hash, secrets.notesAdminPassword)
        ? hash
        : hashPassword(secrets.notesAdminPassword),
  });
  if (text !== known) {
    writeDurably(home.notesIni, text);
  }
}

/** The settings that are missing although a start wrote them; undefined when none is. */
export function notesIniMistake(ini: string): string | undefined {
  const missing = ["uuid", "secret", "admin", "port"].filter(
    (name) => valueOf(ini, name) === undefined,
  );
  return missing.length === 0 ? undefined : `without ${missing.join(", ")}`;
}

/** The ini file, which CouchDB can read as well. */
export function buildNotesIni(settings: {
  readonly port: number;
  readonly uuid: string;
  readonly secret: string;
  /** Proxies whose X-Forwarded-For is trusted; set by the operator. */
  readonly trustedProxies?: string;
  readonly adminHash: string;
}): string {
  return `; Written by hearth up. The embedded notes store reads what a CouchDB would read.
[couchdb]
single_node = true
max_document_size = 50000000
uuid = ${settings.uuid}

[cluster]
n = 1
q = 1

[chttpd]
bind_address = 127.0.0.1
port = ${settings.port}
require_valid_user = true
require_valid_user_except_for_up = true
enable_cors = true
max_http_request_size = 4294967296

[chttpd_auth]
require_valid_user = true
secret = ${settings.secret}

[hearth]
trusted_proxies = ${settings.trustedProxies ?? ""}

[httpd]
enable_cors = true
WWW-Authenticate = Basic realm="couchdb"

[cors]
credentials = true
origins = app://obsidian.md,capacitor://localhost,http://localhost

[log]
level = warning

[admins]
admin = ${settings.adminHash}
`;
}

/** CouchDB's form: `-pbkdf2:sha256-<64 hex>,<salt>,<iterations>`, the salt as ASCII text. */
export function hashPassword(
  password: string,
  salt: string = randomBytes(16).toString("hex"),
  iterations: number = HASH_ITERATIONS,
): string {
  const key = pbkdf2Sync(password, salt, iterations, 32, "sha256");
  return `-pbkdf2:sha256-${key.toString("hex")},${salt},${iterations}`;
}

function fits(hash: string, password: string): boolean {
  const [, salt, iterations] = hash.split(",");
  if (salt === undefined || iterations === undefined) {
    return false;
  }
  const made = Buffer.from(hashPassword(password, salt, Number(iterations)));
  const kept = Buffer.from(hash);
  return made.length === kept.length && timingSafeEqual(made, kept);
}

function valueOf(ini: string, name: string): string | undefined {
  return new RegExp(`^${name}[ \\t]*=[ \\t]*(\\S.*)$`, "m").exec(ini)?.[1];
}
