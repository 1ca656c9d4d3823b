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
import { listen } from "../../test/servers/ports.ts";
import { ProviderDenial, ProviderUnavailable } from "./provider-errors.ts";
import { Provider } from "./provider.ts";

const STATE = "the-state";
const SECRET = "the-secret-of-the-client-of-hearth";
const PENDING = {
  provider: "home",
  redirectUri: "http://127.0.0.1:4080/sign-in/with/home/callback",
  nonce: "the-nonce",
  verifier: "v".repeat(43),
  to: "/",
};

let server: Server;
let issuer: string;
let own: CryptoKey;
let foreign: CryptoKey;
let published: readonly object[];
let provider: Provider;
/** What the provider answers. */
let idToken: string;
let userInfo: JWTPayload;

beforeAll(async () => {
  const pair = await generateKeyPair("RS256", { extractable: true });
  own = pair.privateKey;
  foreign = (await generateKeyPair("RS256")).privateKey;
  const jwk = { ...(await exportJWK(pair.publicKey)), kid: "1", alg: "RS256" };
  published = [jwk];
  server = createServer((request, response) => {
    const answers: Readonly<Record<string, unknown>> = {
      "/.well-known/openid-configuration": {
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        userinfo_endpoint: `${issuer}/userinfo`,
        jwks_uri: `${issuer}/keys`,
        response_types_supported: ["code"],
        subject_types_supported: ["public"],
        id_token_signing_alg_values_supported: ["RS256"],
      },
      "/keys": { keys: published },
      "/token": {
        access_token: "access",
        token_type: "Bearer",
        id_token: idToken,
      },
      "/userinfo": userInfo,
    };
    response
      .setHeader("content-type", "application/json")
      .end(JSON.stringify(answers[request.url ?? ""]));
  });
  issuer = `http://127.0.0.1:${await listen(server)}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  const [config] = signInSchema.parse([
    {
      name: "home",
      issuer,
      client_id: "hearth",
      client_secret: SECRET,
      cli_client_id: "hearth-cli",
      roles: { map: { a: "admin" } },
    },
  ]);
  if (config === undefined) {
    throw new Error("no provider");
  }
  provider = new Provider(config, Date.now);
  userInfo = { sub: "anna", email: "anna@example.org" };
});

function claims(): JWTPayload {
  const now = Math.floor(Date.now() / 1000);
  return {
    iss: issuer,
    aud: "hearth",
    sub: "anna",
    nonce: PENDING.nonce,
    iat: now,
    exp: now + 600,
  };
}

function sign(
  payload: JWTPayload,
  key: CryptoKey | Uint8Array = own,
  kid = "1",
): Promise<string> {
  const alg = key instanceof Uint8Array ? "HS256" : "RS256";
  return new SignJWT(payload).setProtectedHeader({ alg, kid }).sign(key);
}

const grant = () =>
  provider.grant(
    PENDING,
    STATE,
    new URLSearchParams({ code: "the-code", state: STATE }),
  );

test("a token of the provider for this sign-in is accepted", async () => {
  idToken = await sign(claims());
  expect(await grant()).toMatchObject({
    subject: "anna",
    claims: { email: "anna@example.org" },
  });
});

test("a new key of the provider is neither a denial nor the end of a session, however new its known keys are", async () => {
  idToken = await sign(claims());
  const granted = await grant();
  const { privateKey, publicKey } = await generateKeyPair("RS256");
  idToken = await sign(claims(), privateKey, "2");
  await expect(grant()).rejects.toBeInstanceOf(ProviderUnavailable);
  const jwk = { ...(await exportJWK(publicKey)), kid: "2", alg: "RS256" };
  published = [...published, jwk];
  expect(
    await provider.confirm({ ...granted, refreshToken: "refresh" }),
  ).toMatchObject({ subject: "anna", idToken });
});

const HOUR_SECONDS = 3_600;

test.each<[string, () => Promise<string> | string]>([
  ["without a signature", () => new UnsecuredJWT(claims()).encode()],
  ["signed by another key", () => sign(claims(), foreign)],
  [
    "signed with the client's secret",
    () => sign(claims(), new TextEncoder().encode(SECRET)),
  ],
  [
    "changed after it was signed",
    async () => {
      const [head, , signature] = (await sign(claims())).split(".");
      const body = JSON.stringify({ ...claims(), sub: "bert" });
      return `${head}.${Buffer.from(body).toString("base64url")}.${signature}`;
    },
  ],
  ["of another issuer", () => sign({ ...claims(), iss: "https://evil.org" })],
  ["for another client", () => sign({ ...claims(), aud: "other" })],
  [
    "that another client requested",
    () => sign({ ...claims(), aud: ["hearth", "other"], azp: "other" }),
  ],
  ["of another sign-in", () => sign({ ...claims(), nonce: "other" })],
  [
    "without a nonce",
    async () => {
      const { nonce: _, ...others } = claims();
      return sign(others);
    },
  ],
  [
    "that has expired",
    () => sign({ ...claims(), exp: Date.now() / 1000 - HOUR_SECONDS }),
  ],
  [
    "that is not valid yet",
    () => sign({ ...claims(), nbf: Date.now() / 1000 + HOUR_SECONDS }),
  ],
  [
    "without a user",
    async () => {
      const { sub: _, ...others } = claims();
      return sign(others);
    },
  ],
  ["that is no token", () => "x.y.z"],
])("no sign-in by a token %s", async (_what, make) => {
  idToken = await make();
  const error: unknown = await grant().catch((failure: unknown) => failure);
  expect(
    error instanceof ProviderDenial || error instanceof ProviderUnavailable,
  ).toBe(true);
});

test("claims of another user are not taken for those of the token's", async () => {
  idToken = await sign(claims());
  userInfo = { sub: "bert", email: "bert@example.org" };
  await expect(grant()).rejects.toBeInstanceOf(ProviderDenial);
});

test("a token for the commands is none for the browser, nor the reverse", async () => {
  idToken = await sign({ ...claims(), aud: "hearth-cli" });
  await expect(grant()).rejects.toBeInstanceOf(ProviderDenial);
  const browsers = await sign(claims());
  await expect(
    provider.grantOfCommands(browsers, "access"),
  ).rejects.toBeInstanceOf(ProviderDenial);
});
