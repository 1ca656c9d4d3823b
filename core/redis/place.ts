import { readVariable, type Environment } from "../environment.ts";
import { readAddress, type AddressParts } from "./address.ts";
import { readNodes, type RedisNode } from "./nodes.ts";

/** Where a Redis is, and the login. */
export interface RedisPlace {
  /** Redis itself, or its sentinels. */
  readonly nodes: readonly [RedisNode, ...RedisNode[]];
  /** null: no sentinels. */
  readonly sentinel: SentinelLogin | null;
  readonly username: string | null;
  readonly password: string | null;
  readonly database: number;
  readonly tls: boolean;
  /** The certificate authority in PEM form; null: those of the system. */
  readonly ca: string | null;
}

export interface SentinelLogin {
  readonly masterName: string;
  readonly username: string | null;
  readonly password: string | null;
}

/** The settings, by their names in variables. */
export const REDIS_VARIABLES = {
  url: "REDIS_URL",
  host: "REDIS_HOST",
  port: "REDIS_PORT",
  sentinels: "REDIS_SENTINELS",
  masterName: "REDIS_MASTER_NAME",
  username: "REDIS_USERNAME",
  password: "REDIS_PASSWORD",
  sentinelUsername: "REDIS_SENTINEL_USERNAME",
  sentinelPassword: "REDIS_SENTINEL_PASSWORD",
  database: "REDIS_DB",
  tls: "REDIS_TLS",
  ca: "REDIS_CA",
} as const;

export type RedisSetting = keyof typeof REDIS_VARIABLES;

/** What the operator calls each setting. */
export type RedisSettingNames = Readonly<Record<RedisSetting, string>>;

interface RedisMistake {
  readonly setting: RedisSetting;
  /** Contains no value that may be a secret. */
  readonly message: string;
}

export interface RedisReading {
  /** null: no Redis is named, or there are mistakes. */
  readonly place: RedisPlace | null;
  readonly mistakes: readonly RedisMistake[];
}

/** An empty value counts as unset. */
type Read = (setting: RedisSetting) => string | null | undefined;

const MAX_DATABASE = 2 ** 31 - 1;

/** Reads the place of Redis from settings with the given names. */
export function readRedisPlace(
  readSetting: Read,
  names: RedisSettingNames = REDIS_VARIABLES,
): RedisReading {
  const read = (setting: RedisSetting) => readSetting(setting) || null;
  const mistakes: RedisMistake[] = [];
  const report = (setting: RedisSetting, message: string) =>
    void mistakes.push({ setting, message });
  const given = (["url", "sentinels", "host"] as const).filter(
    (setting) => read(setting) !== null,
  );
  const [first, second] = given;
  if (first === undefined) {
    return { place: null, mistakes };
  }
  if (second !== undefined) {
    report(
      first,
      `must not be set together with ${names[second]}: set one of ${names.url}, ${names.sentinels} and ${names.host}`,
    );
    return { place: null, mistakes };
  }
  const url = first === "url" ? readAddress(read("url") ?? "") : {};
  if (typeof url === "string") {
    report("url", url);
    return { place: null, mistakes };
  }
  const place = placeOf(first, url, read, names, report);
  return { place: mistakes.length === 0 ? place : null, mistakes };
}

/** The same from the variables. Throws FileVariableError. */
export function readRedisVariables(env: Environment): RedisReading {
  return readRedisPlace((setting) =>
    readVariable(REDIS_VARIABLES[setting], env),
  );
}

type Report = (setting: RedisSetting, message: string) => void;

function placeOf(
  first: "url" | "sentinels" | "host",
  url: AddressParts,
  read: (setting: RedisSetting) => string | null,
  names: RedisSettingNames,
  report: Report,
): RedisPlace | null {
  /** The part of the address, or the setting. */
  const either = (
    setting: "username" | "password" | "database",
  ): string | null => {
    const [inUrl, separate] = [url[setting] ?? null, read(setting)];
    if (inUrl !== null && separate !== null && inUrl !== separate) {
      report(
        setting,
        `differs from the one in ${names.url}: remove one of them`,
      );
    }
    return inUrl ?? separate;
  };
  const ca = read("ca");
  const nodes = nodesOf(first, url, read, report);
  const place = {
    sentinel:
      first === "sentinels"
        ? {
            masterName: read("masterName") ?? "mymaster",
            username: read("sentinelUsername"),
            password: read("sentinelPassword"),
          }
        : null,
    username: either("username"),
    password: either("password"),
    database:
      wholeNumber(either("database"), "database", MAX_DATABASE, report) ?? 0,
    tls: isTrue(read("tls"), report) || url.tls === true || ca !== null,
    ca,
  };
  if (place.username !== null && place.password === null) {
    report(
      "password",
      `is required with a user name: set ${names.password}, or remove the user name`,
    );
  }
  const [node, ...others] = nodes;
  return node === undefined ? null : { ...place, nodes: [node, ...others] };
}

function nodesOf(
  first: "url" | "sentinels" | "host",
  url: AddressParts,
  read: (setting: RedisSetting) => string | null,
  report: Report,
): readonly RedisNode[] {
  if (first === "sentinels") {
    const nodes = readNodes(read("sentinels") ?? "");
    if (typeof nodes !== "string") {
      return nodes;
    }
    report("sentinels", nodes);
    return [];
  }
  if (first === "url") {
    return [{ host: url.host ?? "", port: url.port ?? 6_379 }];
  }
  const port = wholeNumber(read("port"), "port", 65_535, report, 1);
  return [{ host: read("host") ?? "", port: port ?? 6_379 }];
}

function wholeNumber(
  text: string | null,
  setting: RedisSetting,
  max: number,
  report: Report,
  min = 0,
): number | null {
  if (text === null) {
    return null;
  }
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= min && number <= max) {
    return number;
  }
  report(
    setting,
    setting === "database"
      ? `must be the number of a database, such as 0 or 3`
      : `must be a whole number from ${min} to ${max}`,
  );
  return null;
}

function isTrue(text: string | null, report: Report): boolean {
  const value = text?.toLowerCase() ?? "false";
  if (value !== "true" && value !== "false") {
    report("tls", "must be true or false");
  }
  return value === "true";
}
