import { createServer, type Server } from "node:http";
import {
  exportJWK,
  generateKeyPair,
  SignJWT,
  UnsecuredJWT,
  type CryptoKey,
  type JWTPayload,
} from "jose";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { signInSchema } from "../../supervisor/sign-in/config.ts";
import { LogoutTokens } from "./logout-tokens.ts";
import { ProviderUnavailable } from "./provider-errors.ts";
import { listen } from "../../test/servers/ports.ts";

const ISSUER = "https://auth.example.org";
const EVENT = "http://schemas.openid.net/event/backchannel-logout";
const NOW_MS = Date.parse("2026-11-26T12:00:00Z");
const NOW = NOW_MS / 1000;

let keys: Server;
let own: CryptoKey;
let foreign: CryptoKey;
let metadata: Parameters<LogoutTokens["read"]>[1];
let tokens: LogoutTokens;
let isDown: boolean;
let now: number;

beforeAll(async () => {
  const pair = await generateKeyPair("ES256", { extractable: true });
  own = pair.privateKey;
  foreign = (await generateKeyPair("ES256")).privateKey;
  const jwk = { ...(await exportJWK(pair.publicKey)), kid: "1", alg: "ES256" };
  keys = createServer((_request, response) => {
    response.statusCode = isDown ? 502 : 200;
    response
      .setHeader("content-type", "application/json")
      .end(JSON.stringify({ keys: [jwk] }));
  });
  const port = await listen(keys);
  metadata = {
    issuer: ISSUER,
    jwks_uri: `http://127.0.0.1:${port}/`,
    id_token_signing_alg_values_supported: ["ES256", "HS256", "none"],
  };
});
afterAll(() => {
  keys.closeAllConnections();
  keys.close();
});
beforeEach(() => {
  const [config] = signInSchema.parse([
    {
      name: "home",
      issuer: ISSUER,
      client_id: "hearth",
      roles: { map: { a: "admin" } },
    },
  ]);
  if (config === undefined) {
    throw new Error("no provider");
  }
  isDown = false;
  now = NOW_MS;
  tokens = new LogoutTokens(config, () => now);
});

const valid: JWTPayload = {
  iss: ISSUER,
  aud: "hearth",
  iat: NOW,
  jti: "one",
  sub: "anna",
  sid: "at-home",
  events: { [EVENT]: {} },
};

function sign(payload: JWTPayload, key: CryptoKey | Uint8Array = own) {
  const alg = key instanceof Uint8Array ? "HS256" : "ES256";
  return new SignJWT(payload).setProtectedHeader({ alg, kid: "1" }).sign(key);
}

test("a valid token names a session, or all of a user, and is accepted once", async () => {
  const token = await sign(valid);
  expect(await tokens.read(token, metadata)).toEqual({
    sid: "at-home",
    subject: "anna",
  });
  await expect(tokens.read(token, metadata)).rejects.toThrow("invalid");
  const user = { ...valid, jti: "two", sid: undefined };
  expect(await tokens.read(await sign(user), metadata)).toEqual({
    sid: null,
    subject: "anna",
  });
});

test.each<[string, JWTPayload]>([
  ["of another issuer", { iss: "https://evil.example" }],
  ["for another client", { aud: "other" }],
  ["that is old", { iat: NOW - 3600 }],
  ["from the future", { iat: NOW + 3600 }],
  ["that has expired", { exp: NOW - 3600 }],
  ["without an id", { jti: undefined }],
  ["without its event", { events: {} }],
  ["that may be an ID token", { nonce: "n" }],
  ["about nobody", { sub: undefined, sid: undefined }],
])("a token %s is rejected", async (_case, change) => {
  const token = await sign({ ...valid, ...change });
  await expect(tokens.read(token, metadata)).rejects.toThrow(
    "The logout token is invalid.",
  );
});

test("tokens that the provider has not signed are rejected", async () => {
  for (const token of [
    await sign(valid, foreign),
    await sign(valid, new TextEncoder().encode("hearth")),
    new UnsecuredJWT(valid).encode(),
    "",
  ]) {
    await expect(tokens.read(token, metadata)).rejects.toThrow("invalid");
  }
});

test("without the provider's keys a token is not called invalid, and keys that were read stay in use", async () => {
  isDown = true;
  const token = await sign(valid);
  await expect(tokens.read(token, metadata)).rejects.toThrow(
    ProviderUnavailable,
  );
  isDown = false;
  now += 60_000;
  expect(await tokens.read(token, metadata)).toMatchObject({ subject: "anna" });
  isDown = true;
  now += 1_800_000;
  const later = { ...valid, jti: "two", iat: now / 1000 };
  expect(await tokens.read(await sign(later), metadata)).toMatchObject({
    subject: "anna",
  });
});
