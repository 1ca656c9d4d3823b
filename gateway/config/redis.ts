import type { ReadVariable } from "../../core/config/references.ts";
import { problemAt, type Reading } from "../../core/config/reading.ts";
import {
  REDIS_VARIABLES,
  readRedisPlace,
  type RedisPlace,
  type RedisSetting,
} from "../../core/redis/place.ts";
import type { Parts } from "./parts.ts";
import { secret } from "./secret.ts";
import { contradictsVariable } from "./sections.ts";
import type { RedisConfig } from "./types.ts";

/** The Redis of cache and limits; null when none is named, with a warning if the configuration asks for Redis. */
export function readRedis(
  reading: Reading,
  read: ReadVariable,
  parts: Pick<Parts, "cache" | "router">,
): RedisConfig | null {
  const contradicted = contradictedVariable(read, parts);
  if (contradicted !== undefined) {
    const path =
      parts.cache.host === undefined
        ? ["router_settings", "redis_host"]
        : ["proxy_settings", "cache_params", "host"];
    reading.problems.push(contradictsVariable(reading, path, contradicted));
    return null;
  }
  const { place, mistakes } = readRedisPlace((setting) =>
    settingOf(setting, read, parts),
  );
  for (const { setting, message } of mistakes) {
    reading.problems.push({
      file: null,
      line: null,
      path: REDIS_VARIABLES[setting],
      message,
    });
  }
  if (place === null && mistakes.length === 0 && parts.cache.type === "redis") {
    reading.warnings.push(
      problemAt(
        reading,
        ["proxy_settings", "cache_params", "type"],
        "is redis, but no host is set; cache and limits use memory until host, REDIS_HOST, REDIS_URL or REDIS_SENTINELS is set",
      ),
    );
  }
  return place === null ? null : withSecrets(place);
}

/** The variable that names the Redis of a stack, where the file names one, too. */
function contradictedVariable(
  read: ReadVariable,
  { cache, router }: Pick<Parts, "cache" | "router">,
): string | undefined {
  return (cache.host ?? router.redis_host) === undefined
    ? undefined
    : [REDIS_VARIABLES.url, REDIS_VARIABLES.sentinels].find(
        (variable) => read(variable) !== null,
      );
}

/** Host, port and password may be in the file, under the names of LiteLLM. */
function settingOf(
  setting: RedisSetting,
  read: ReadVariable,
  { cache, router }: Pick<Parts, "cache" | "router">,
): string | null {
  const variable = read(REDIS_VARIABLES[setting]);
  const host = cache.host ?? router.redis_host ?? null;
  switch (setting) {
    case "host":
      return host ?? variable;
    case "port": {
      const port = cache.port ?? router.redis_port;
      return port === undefined ? variable : String(port);
    }
    case "password":
      return cache.password ?? router.redis_password ?? variable;
    case "ca":
      // The certificate authority of REDIS_HOST: another host in the file is a different Redis.
      return host === null || host === read("REDIS_HOST") ? variable : null;
    default:
      return variable;
  }
}

function withSecrets(place: RedisPlace): RedisConfig {
  const { sentinel, password } = place;
  return {
    ...place,
    password: password === null ? null : secret(password),
    sentinel:
      sentinel === null
        ? null
        : {
            ...sentinel,
            password:
              sentinel.password === null ? null : secret(sentinel.password),
          },
  };
}

/** The place with its passwords, for a connection. */
export function revealedPlace(redis: RedisConfig): RedisPlace {
  const { sentinel, password } = redis;
  return {
    ...redis,
    password: password?.reveal() ?? null,
    sentinel:
      sentinel === null
        ? null
        : { ...sentinel, password: sentinel.password?.reveal() ?? null },
  };
}
