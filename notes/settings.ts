import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import type { BlockList } from "node:net";
import { join } from "node:path";
import { readProxies } from "./auth/address.ts";
import { hashPassword, isPasswordHash } from "./auth/passwords.ts";
import { dictionary } from "./dictionary.ts";
import { parseIni, type Ini } from "./ini.ts";
import { Listeners } from "./listeners.ts";
import { writeDurably } from "../core/durable-file.ts";

/** The server's settings: the ini file, overridden by changes through `/_node/_local/_config`. */
export interface Settings {
  readonly sections: () => Ini;
  readonly get: (section: string, key: string) => string | undefined;
  /** Saves a value (undefined removes the key) for this and later processes. Passwords of admins are saved as hashes only. */
  readonly set: (
    section: string,
    key: string,
    value: string | undefined,
  ) => Promise<void>;
  /** Names and password hashes of the server admins. */
  readonly admins: () => Readonly<Record<string, string>>;
  readonly maxDocumentSize: () => number;
  readonly maxRequestSize: () => number;
  readonly origins: () => readonly string[];
  readonly passwordIterations: () => number;
  /** How long a session cookie is valid. */
  readonly sessionSeconds: () => number;
  /** How long a database's thread may stay unresponsive. */
  readonly watchdogMs: () => number;
  /** How long an unused database stays open. */
  readonly idleMs: () => number;
  /** Proxies whose `X-Forwarded-For` is trusted, such as the stack's edge. */
  readonly trustedProxies: BlockList;
  /** Calls `listener` after every change through `set`. */
  readonly onChange: (listener: () => void) => void;
  /** Maximum bytes of past versions per database. */
  readonly historyMaxBytes: () => number;
  /** Identifies this server permanently. */
  readonly uuid: string;
}

/** CouchDB's defaults, and one for the history: metadata is small and chunks are shared, so years of writing fit into it. */
const defaults = {
  maxDocumentSize: 8_000_000,
  maxRequestSize: 4_294_967_296,
  passwordIterations: 600_000,
  sessionSeconds: 600,
  watchdogSeconds: 30,
  idleSeconds: 120,
  historyMaxBytes: 500_000_000,
};

/** A value set by a request, and the ini's value at that time: an ini that has changed since then takes precedence. */
interface Override {
  readonly value: string | null;
  readonly insteadOf: string | null;
}

type Overrides = Record<string, Record<string, Override>>;

/** Reads the ini and the values saved in the data directory. Throws an error of one sentence if one is invalid. */
export function readSettings(iniFile: string, dataDirectory: string): Settings {
  const ini = readIni(iniFile);
  const keptFile = join(dataDirectory, "config.json");
  let kept = readOverrides(keptFile);
  let merged = merge(ini, kept);
  const listeners = new Listeners();
  checkAdmins(iniFile, merged);
  const number = (section: string, key: string, otherwise: number): number => {
    const value = Number(merged[section]?.[key] ?? otherwise);
    return Number.isFinite(value) && value > 0 ? value : otherwise;
  };
  return {
    sections: () => merged,
    get: (section, key) => merged[section]?.[key],
    set: async (section, key, value) => {
      const stored =
        section === "admins" && value !== undefined && !isPasswordHash(value)
          ? await hashPassword(
              value,
              number("chttpd_auth", "iterations", defaults.passwordIterations),
            )
          : (value ?? null);
      const override: Override = {
        value: stored,
        insteadOf: ini[section]?.[key] ?? null,
      };
      const next = dictionary(kept);
      next[section] = dictionary({ ...kept[section], [key]: override });
      // Applied only once it is on disk: a change that a full disk rejects must not take effect with the next one.
      writeDurably(keptFile, `${JSON.stringify(next, null, 2)}\n`);
      kept = next;
      merged = merge(ini, kept);
      listeners.notify();
    },
    onChange: (listener) => void listeners.add(listener),
    trustedProxies: proxiesOf(iniFile, merged),
    admins: () => merged.admins ?? {},
    maxDocumentSize: () =>
      number("couchdb", "max_document_size", defaults.maxDocumentSize),
    maxRequestSize: () =>
      number("chttpd", "max_http_request_size", defaults.maxRequestSize),
    origins: () =>
      (merged.chttpd?.enable_cors ?? merged.httpd?.enable_cors) === "true"
        ? (merged.cors?.origins ?? "").split(",").filter((each) => each !== "")
        : [],
    sessionSeconds: () =>
      number("chttpd_auth", "timeout", defaults.sessionSeconds),
    watchdogMs: () =>
      1000 * number("hearth", "watchdog_seconds", defaults.watchdogSeconds),
    idleMs: () => 1000 * number("hearth", "idle_seconds", defaults.idleSeconds),
    passwordIterations: () =>
      number("chttpd_auth", "iterations", defaults.passwordIterations),
    historyMaxBytes: () =>
      number("hearth", "history_max_bytes", defaults.historyMaxBytes),
    uuid: merged.couchdb?.uuid ?? ownUuid(dataDirectory),
  };
}

/** Reads and checks only the ini file. Throws an error of one sentence. */
export function readIni(iniFile: string): Ini {
  let text: string;
  try {
    text = readFileSync(iniFile, "utf8");
  } catch (failure) {
    const code = (failure as NodeJS.ErrnoException).code;
    throw new Error(
      code === "ENOENT"
        ? `the ini file ${iniFile} not found; set the right path with --ini`
        : `the ini file ${iniFile} cannot be read (${code}); make it readable by this user`,
    );
  }
  try {
    return parseIni(text);
  } catch (failure) {
    throw new Error(
      `the ini file ${iniFile} is invalid: ${(failure as Error).message}`,
    );
  }
}

function checkAdmins(iniFile: string, ini: Ini): void {
  const admins = Object.entries(ini.admins ?? {});
  if (admins.length === 0) {
    throw new Error(
      `the ini file ${iniFile} has no server admin; add admin = -pbkdf2:sha256-… under [admins]`,
    );
  }
  for (const [name, hash] of admins) {
    if (!isPasswordHash(hash)) {
      throw new Error(
        `the ini file ${iniFile} has no valid password hash for admin ${name}; it must be -pbkdf2:sha256-<64 hex>,<salt>,<iterations>`,
      );
    }
  }
}

function proxiesOf(iniFile: string, ini: Ini): BlockList {
  try {
    return readProxies(ini.hearth?.trusted_proxies ?? "");
  } catch (failure) {
    throw new Error(`the ini file ${iniFile}: ${(failure as Error).message}`);
  }
}

function merge(ini: Ini, kept: Overrides): Ini {
  const merged = dictionary<Record<string, string>>();
  for (const [section, keys] of Object.entries(ini)) {
    merged[section] = dictionary(keys);
  }
  for (const [section, keys] of Object.entries(kept)) {
    const target = (merged[section] ??= dictionary());
    for (const [key, { value, insteadOf }] of Object.entries(keys)) {
      if ((ini[section]?.[key] ?? null) !== insteadOf) {
        continue;
      }
      if (value === null) {
        delete target[key];
      } else {
        target[key] = value;
      }
    }
  }
  return merged;
}

function readOverrides(file: string): Overrides {
  return dictionary(
    readJson<Overrides>(
      file,
      "the settings and passwords of the ini file then apply",
    ),
  );
}

function ownUuid(dataDirectory: string): string {
  const file = join(dataDirectory, "server.json");
  const known = readJson<{ uuid: string }>(
    file,
    "devices then compare all of their notes once more",
  );
  if (known !== undefined) {
    return known.uuid;
  }
  const uuid = randomBytes(16).toString("hex");
  mkdirSync(dataDirectory, { recursive: true });
  writeDurably(file, `${JSON.stringify({ uuid })}\n`);
  return uuid;
}

function readJson<T>(file: string, withoutIt: string): T | undefined {
  if (!existsSync(file)) {
    return undefined;
  }
  const text = readFileSync(file, "utf8");
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new Error(
      `${file} is damaged; restore it from a copy, or move it away: ${withoutIt}`,
    );
  }
}
