import { expect, test } from "vitest";
import { redisOptions } from "./options.ts";
import { REDIS_VARIABLES, readRedisPlace, type RedisSetting } from "./place.ts";

type Variables = Readonly<Record<string, string>>;

function reading(variables: Variables) {
  return readRedisPlace(
    (setting: RedisSetting) => variables[REDIS_VARIABLES[setting]],
  );
}

function mistakes(variables: Variables): readonly string[] {
  const { place, mistakes } = reading(variables);
  expect(place).toBeNull();
  return mistakes.map(
    ({ setting, message }) => `${REDIS_VARIABLES[setting]} ${message}`,
  );
}

test("without an address there is no Redis, and no mistake", () => {
  expect(reading({ REDIS_PORT: "1", REDIS_PASSWORD: "p" })).toEqual({
    place: null,
    mistakes: [],
  });
});

test("an address has the login, the database and TLS", () => {
  const { place } = reading({
    REDIS_URL: "rediss://gate%40way:p%2Fw@redis.internal:6390/3",
  });
  expect(place).toEqual({
    nodes: [{ host: "redis.internal", port: 6390 }],
    sentinel: null,
    username: "gate@way",
    password: "p/w",
    database: 3,
    tls: true,
    ca: null,
  });
});

test("the login and the database may be separate from the address", () => {
  expect(
    reading({
      REDIS_URL: "redis://[::1]",
      REDIS_USERNAME: "gateway",
      REDIS_PASSWORD: "p",
      REDIS_DB: "2",
      REDIS_CA: "the authority",
    }).place,
  ).toMatchObject({
    nodes: [{ host: "::1", port: 6379 }],
    username: "gateway",
    password: "p",
    database: 2,
    tls: true,
    ca: "the authority",
  });
});

test("sentinels have default ports, a name and a login of their own", () => {
  const { place } = reading({
    REDIS_SENTINELS: "one, two:26380,[fd00::3]:26381",
    REDIS_USERNAME: "gateway",
    REDIS_PASSWORD: "p",
    REDIS_SENTINEL_USERNAME: "watcher",
    REDIS_SENTINEL_PASSWORD: "q",
    REDIS_TLS: "true",
  });
  expect(place && redisOptions(place)).toMatchObject({
    sentinels: [
      { host: "one", port: 26379 },
      { host: "two", port: 26380 },
      { host: "fd00::3", port: 26381 },
    ],
    name: "mymaster",
    username: "gateway",
    password: "p",
    sentinelUsername: "watcher",
    sentinelPassword: "q",
    tls: {},
    sentinelTLS: {},
    enableTLSForSentinelMode: true,
  });
});

test("mistakes name the variable and what to set, and no secret", () => {
  expect(mistakes({ REDIS_URL: "redis://r", REDIS_SENTINELS: "one" })).toEqual([
    "REDIS_URL must not be set together with REDIS_SENTINELS: set one of REDIS_URL, REDIS_SENTINELS and REDIS_HOST",
  ]);
  expect(mistakes({ REDIS_SENTINELS: "one:26379,two:port" })).toEqual([
    'REDIS_SENTINELS must be addresses of sentinels such as "one:26379,two:26379", and "two:port" is not host:port',
  ]);
  for (const list of ["one:0", "one:70000", "one,,two", "redis://one"]) {
    expect(mistakes({ REDIS_SENTINELS: list })).toHaveLength(1);
  }
  expect(mistakes({ REDIS_URL: "redis://h", REDIS_DB: "x" })).toEqual([
    "REDIS_DB must be the number of a database, such as 0 or 3",
  ]);
  expect(mistakes({ REDIS_URL: "redis://h/three" })[0]).toMatch(
    /^REDIS_URL must end in the number of a database/,
  );
  expect(mistakes({ REDIS_HOST: "h", REDIS_DB: "-1" })).toHaveLength(1);
  expect(mistakes({ REDIS_HOST: "h", REDIS_TLS: "yes" })).toEqual([
    "REDIS_TLS must be true or false",
  ]);
  expect(mistakes({ REDIS_HOST: "h", REDIS_USERNAME: "u" })).toEqual([
    "REDIS_PASSWORD is required with a user name: set REDIS_PASSWORD, or remove the user name",
  ]);
  const secret = "s3cret";
  for (const url of [
    `http://u:${secret}@h`,
    `redis://u:${secret}@h/x`,
    `redis://u:${secret}%zz@h`,
    secret,
  ]) {
    expect(mistakes({ REDIS_URL: url }).join()).not.toContain(secret);
  }
  expect(
    mistakes({ REDIS_SENTINELS: `u:${secret}@one:26379` }).join(),
  ).not.toContain(secret);
  expect(
    mistakes({ REDIS_URL: `redis://:${secret}@h`, REDIS_PASSWORD: "other" }),
  ).toEqual([
    "REDIS_PASSWORD differs from the one in REDIS_URL: remove one of them",
  ]);
});
