import { expect, test } from "vitest";
import type { Payers } from "../ledger/payers.ts";
import type { CacheConfig } from "../config/types.ts";
import { decodeAnswer, encodeAnswer } from "./entry.ts";
import { cacheKeyOf, readCacheOptions } from "./key.ts";
import { createMemoryCache } from "./memory.ts";

const config: CacheConfig = {
  enabled: true,
  kind: "memory",
  ttlMs: 600_000,
  namespace: "proxy.cache",
  callTypes: ["acompletion", "aembedding"],
  mode: "default_on",
  scope: "tenant",
};

const alice: Payers = {
  apiKey: "k1",
  userId: "alice",
  userPays: true,
  teamId: null,
  organizationId: null,
  endUser: null,
  tags: [],
  alias: "m",
};

function keyOf(
  body: Readonly<Record<string, unknown>>,
  payers = alice,
  changes: Partial<CacheConfig> = {},
  variant = "",
): string | null {
  return cacheKeyOf(
    { ...config, ...changes },
    { callType: "acompletion", alias: "m", variant, payers, body },
    readCacheOptions(body, {}),
  );
}

const body = { model: "m", messages: [{ role: "user", content: "hi" }] };

test("equal requests have the same key, whatever the order of fields", () => {
  const other = { messages: [{ content: "hi", role: "user" }], model: "m" };
  expect(keyOf(body)).toBe(keyOf(other));
  expect(keyOf(body)).toMatch(/^proxy\.cache:[0-9a-f]{64}$/);
});

test("everything that changes the answer changes the key; the caller does not", () => {
  expect(keyOf(body, alice, {}, "team:crew")).not.toBe(keyOf(body));
  expect(keyOf({ ...body, temperature: 0.1 })).not.toBe(keyOf(body));
  expect(keyOf({ ...body, stream: true })).not.toBe(keyOf(body));
  expect(keyOf({ ...body, some_new_parameter: 1 })).not.toBe(keyOf(body));
  expect(keyOf({ ...body, user: "eve", metadata: { a: 1 } })).toBe(keyOf(body));
});

test("long texts differ down to the last character", () => {
  const keyFor = (...contents: readonly unknown[]) =>
    keyOf({
      model: "m",
      messages: contents.map((content) => ({ role: "user", content })),
    });
  const long = "x".repeat(2_000);
  const keys = [
    keyFor(long),
    keyFor(`${long}x`),
    keyFor(`${long}y`),
    keyFor(`${long}\ud800`),
    keyFor(`${long}\udbff`),
    keyFor(long, long),
    keyFor(long + long),
    keyFor([long]),
    keyFor(`${long.length}:${long}`),
    keyFor({ text: long }),
  ];
  expect(new Set(keys).size).toBe(keys.length);
  expect(keyFor(long)).toBe(keys[0]);
});

test("each tenant has its own keys: the team, else the user, else the key", () => {
  const bob = { ...alice, userId: "bob" };
  const team = { ...alice, teamId: "t" };
  const withoutUser = { ...alice, userId: null };
  const keys = [alice, bob, team, withoutUser].map((payers) =>
    keyOf(body, payers),
  );
  expect(new Set(keys).size).toBe(4);
  expect(keyOf(body, { ...bob, teamId: "t" })).toBe(keyOf(body, team));
  expect(keyOf(body, bob, { scope: "global" })).toBe(
    keyOf(body, alice, { scope: "global" }),
  );
});

test("a caller can opt out of the cache, or opt in where it is off", () => {
  expect(keyOf(body, alice, { enabled: false })).toBeNull();
  expect(keyOf(body, alice, { mode: "default_off" })).toBeNull();
  expect(
    keyOf({ ...body, cache: { "use-cache": true } }, alice, {
      mode: "default_off",
    }),
  ).not.toBeNull();
  expect(readCacheOptions({}, { "cache-control": "no-store" })).toMatchObject({
    read: false,
    store: false,
  });
  expect(readCacheOptions({}, { "cache-control": "no-cache" })).toMatchObject({
    read: false,
    store: true,
  });
});

test("entries expire, and the least recently used is removed first", () => {
  let now = 0;
  const cache = createMemoryCache({ maxBytes: 1_000, now: () => now });
  for (const name of ["a", "b", "c"]) {
    cache.set(name, Buffer.alloc(100), 50);
  }
  expect(cache.get("a")).not.toBeNull();
  cache.set("d", Buffer.alloc(100), 100);
  expect(cache.get("b")).toBeNull();
  expect(cache.get("a")).not.toBeNull();
  now = 60;
  expect(cache.get("a")).toBeNull();
  expect(cache.get("d")).not.toBeNull();
  expect(cache.clear()).toBe(2);
});

test("an entry is not kept for longer after the clock was set back", () => {
  let now = 3_600_000;
  const cache = createMemoryCache({ now: () => now });
  cache.set("a", Buffer.alloc(100), 600_000);
  now = 0;
  expect(cache.get("a")).toBeNull();
});

test("an answer keeps its bytes unchanged", () => {
  const answer = {
    contentType: "application/json",
    usage: {
      inputTokens: 1,
      outputTokens: 2,
      cachedInputTokens: 0,
      cacheWriteTokens: 0,
      audioInputTokens: 0,
      audioOutputTokens: 0,
      reasoningTokens: 0,
    },
    cost: 0.5,
    responseId: null,
    body: Buffer.from([0, 10, 255, 10]),
  };
  expect(decodeAnswer(encodeAnswer(answer))).toEqual(answer);
  expect(decodeAnswer(Buffer.from("not ours"))).toBeNull();
});
