import { createHmac, createPublicKey } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { HOUR_MS } from "../duration.ts";
import {
  encoded,
  newSigningKey,
  signedToken,
  startTokenIssuer,
  type SigningKey,
  type TokenIssuer,
} from "../../test/servers/token-issuer.ts";
import { REQUEST_PAUSE_MS, SigningKeys } from "./signing-keys.ts";
import { IssuerUnavailable, TokenRejected } from "./token-errors.ts";
import { looksLikeToken, namedIssuer, verifyToken } from "./verify-token.ts";

const REFRESH_MS = 600_000;
const KEEP_MS = HOUR_MS;
const LEEWAY_SECONDS = 30;

let issuer: TokenIssuer;
let other: TokenIssuer;
let stranger: SigningKey;
let curve: SigningKey;
let keys: SigningKeys;
let now: number;

beforeAll(async () => {
  issuer = await startTokenIssuer();
  other = await startTokenIssuer("first");
  stranger = await newSigningKey("first");
  curve = await newSigningKey("curve", "ES256");
});
afterAll(async () => {
  await issuer.down();
  await other.down();
});
beforeEach(() => {
  now = Date.now();
  issuer.keys = [issuer.key.publicJwk];
  issuer.status = 200;
  issuer.requests = 0;
  keys = keysOf(null);
});

function keysOf(jwksUri: string | null): SigningKeys {
  return new SigningKeys({
    issuer: issuer.issuer,
    jwksUri,
    refreshAfterMs: REFRESH_MS,
    keepMs: KEEP_MS,
    now: () => now,
  });
}

function verify(token: string) {
  return verifyToken(
    token,
    {
      issuer: issuer.issuer,
      audiences: ["gateway", "console"],
      algorithms: ["RS256"],
      leewayMs: LEEWAY_SECONDS * 1000,
    },
    keys,
    now,
  );
}

/** The sentence with which a token is rejected. */
async function rejection(token: string): Promise<string> {
  const error: unknown = await verify(token).then(
    () => new Error("accepted"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(TokenRejected);
  const { message } = error as Error;
  expect(message).not.toContain(token.slice(-20));
  return message;
}

const seconds = (offset: number) => Math.floor(Date.now() / 1000) + offset;

test("a signed token for the audience is accepted, with its claims and times", async () => {
  const token = issuer.token({ aud: ["elsewhere", "gateway"], team: "a" });
  expect(looksLikeToken(token)).toBe(true);
  expect(await namedIssuer(token)).toBe(issuer.issuer);
  const { claims, expiresAt, issuedAt } = await verify(token);
  expect(claims).toMatchObject({ sub: "anna", team: "a" });
  expect(expiresAt - issuedAt).toBe(HOUR_MS);
});

test("clocks may differ by the leeway", async () => {
  await verify(issuer.token({ exp: seconds(-LEEWAY_SECONDS + 5) }));
  await verify(issuer.token({ iat: seconds(LEEWAY_SECONDS - 5) }));
  await verify(issuer.token({ nbf: seconds(LEEWAY_SECONDS - 5) }));
});

test.each(["JWT", "at+jwt", "application/AT+JWT"])(
  "the type %s is accepted",
  async (typ) => {
    await verify(issuer.token({}, { typ }));
  },
);

interface Attack {
  readonly what: string;
  readonly token: () => string;
  readonly says: RegExp;
}

const claimsOf = (more: object) =>
  JSON.stringify({
    iss: issuer.issuer,
    aud: "gateway",
    sub: "anna",
    iat: seconds(0),
    exp: seconds(3600),
    ...more,
  });

const ATTACKS: readonly Attack[] = [
  {
    what: "no signature (alg none)",
    token: () =>
      `${encoded('{"alg":"none","kid":"first"}')}.${encoded(claimsOf({}))}.`,
    says: /algorithm/,
  },
  {
    what: "a signature removed from a signed token",
    token: () => issuer.token().replace(/[^.]*$/, ""),
    says: /signature/,
  },
  {
    what: "an HMAC with the public key as the secret",
    token() {
      const pem = createPublicKey({
        key: issuer.key.publicJwk as never,
        format: "jwk",
      }).export({ type: "spki", format: "pem" });
      const input = `${encoded('{"alg":"HS256","kid":"first"}')}.${encoded(claimsOf({}))}`;
      const mac = createHmac("sha256", pem).update(input).digest("base64url");
      return `${input}.${mac}`;
    },
    says: /algorithm/,
  },
  {
    what: "a changed claim",
    token() {
      const [header, , signature] = issuer.token().split(".");
      return `${header}.${encoded(claimsOf({ sub: "bert" }))}.${signature}`;
    },
    says: /signature/,
  },
  {
    what: "another key under the name of a published one",
    token: () => issuer.token({}, {}, stranger),
    says: /signature/,
  },
  {
    what: "another issuer's key",
    token: () => other.token({ iss: issuer.issuer }),
    says: /signature/,
  },
  {
    what: "another issuer",
    token: () => issuer.token({ iss: other.issuer }),
    says: /`iss`/,
  },
  {
    what: "an issuer that only begins like the trusted one",
    token: () => issuer.token({ iss: `${issuer.issuer}/` }),
    says: /`iss`/,
  },
  {
    what: "an algorithm of the issuer that is not pinned",
    token: () => issuer.token({}, {}, curve),
    says: /algorithm/,
  },
  {
    what: "no name of a key",
    token: () => issuer.token({}, { kid: undefined }),
    says: /`kid`/,
  },
  {
    what: "an empty name of a key",
    token: () => issuer.token({}, { kid: "" }),
    says: /`kid`/,
  },
  {
    what: "an unknown key",
    token: () => issuer.token({}, { kid: "elsewhere" }),
    says: /does not publish/,
  },
  {
    what: "an address of keys in the header (jku)",
    token: () => issuer.token({}, { jku: `${other.issuer}/keys` }, stranger),
    says: /`jku`/,
  },
  {
    what: "an address of a certificate in the header (x5u)",
    token: () => issuer.token({}, { x5u: `${other.issuer}/keys` }, stranger),
    says: /`x5u`/,
  },
  {
    what: "a certificate in the header (x5c)",
    token: () => issuer.token({}, { x5c: ["MIIB"] }),
    says: /`x5c`/,
  },
  {
    what: "a key in the header (jwk)",
    token: () => issuer.token({}, { jwk: stranger.publicJwk }, stranger),
    says: /`jwk`/,
  },
  {
    what: "an unknown critical header",
    token: () => issuer.token({}, { crit: ["b64"], b64: false }),
    says: /signature/,
  },
  {
    what: "a logout token by its type",
    token: () => issuer.token({}, { typ: "logout+jwt" }),
    says: /another type/,
  },
  {
    what: "a logout token by its claim",
    token: () => issuer.token({ events: {} }),
    says: /reports an event/,
  },
  {
    what: "a token bound to a key that the caller does not prove",
    token: () => issuer.token({ cnf: { jkt: "thumbprint" } }),
    says: /bound to a key/,
  },
  {
    what: "more characters than allowed",
    token: () => issuer.token({ padding: "x".repeat(16_384) }),
    says: /longer than/,
  },
  {
    what: "another audience",
    token: () => issuer.token({ aud: "gateways" }),
    says: /audience/,
  },
  {
    what: "a list of other audiences",
    token: () => issuer.token({ aud: ["other", "gateway.example.org"] }),
    says: /audience/,
  },
  {
    what: "an audience that is neither a text nor a list",
    token: () => issuer.token({ aud: { gateway: true } }),
    says: /audience/,
  },
  {
    what: "no audience",
    token: () => issuer.token({ aud: undefined }),
    says: /audience/,
  },
  {
    what: "no expiry",
    token: () => issuer.token({ exp: undefined }),
    says: /`exp`/,
  },
  {
    what: "an expiry that is a text",
    token: () => issuer.token({ exp: String(seconds(3600)) }),
    says: /`exp`/,
  },
  {
    what: "an expiry further back than the leeway",
    token: () => issuer.token({ exp: seconds(-LEEWAY_SECONDS - 2) }),
    says: /expired/,
  },
  {
    what: "a start further ahead than the leeway",
    token: () => issuer.token({ nbf: seconds(LEEWAY_SECONDS + 5) }),
    says: /not valid yet/,
  },
  {
    what: "a time of issue further ahead than the leeway",
    token: () => issuer.token({ iat: seconds(LEEWAY_SECONDS + 5) }),
    says: /in the future/,
  },
  {
    what: "no time of issue",
    token: () => issuer.token({ iat: undefined }),
    says: /`iat`/,
  },
  {
    what: "no subject",
    token: () => issuer.token({ sub: undefined }),
    says: /`sub`/,
  },
  {
    what: "a subject that is no text",
    token: () => issuer.token({ sub: ["anna"] }),
    says: /subject/,
  },
  {
    what: "a repeated claim",
    token: () =>
      signedToken(
        '{"alg":"RS256","kid":"first"}',
        claimsOf({}).replace("{", '{"sub":"bert",'),
        issuer.key,
      ),
    says: /twice/,
  },
  {
    what: "a repeated claim under another spelling",
    token: () =>
      signedToken(
        '{"alg":"RS256","kid":"first"}',
        claimsOf({}).replace("{", '{"s\\u0075b":"bert",'),
        issuer.key,
      ),
    says: /twice/,
  },
  {
    what: "a claim that is repeated within another one",
    token: () =>
      signedToken(
        '{"alg":"RS256","kid":"first"}',
        claimsOf({}).replace("{", '{"realm":{"team":"a","team":"b"},'),
        issuer.key,
      ),
    says: /twice/,
  },
  {
    what: "a repeated header",
    token: () =>
      signedToken(
        '{"alg":"none","alg":"RS256","kid":"first"}',
        claimsOf({}),
        issuer.key,
      ),
    says: /twice/,
  },
  {
    what: "claims that are no JSON object",
    token: () => signedToken('{"alg":"RS256","kid":"first"}', "[]", issuer.key),
    says: /signature|not a JSON/,
  },
  {
    what: "a key that is published as a shared secret",
    token() {
      issuer.keys = [{ kty: "oct", kid: "first", k: "c2VjcmV0" }];
      return issuer.token();
    },
    says: /does not publish/,
  },
  {
    what: "a name that two published keys have",
    token() {
      issuer.keys = [issuer.key.publicJwk, stranger.publicJwk];
      return issuer.token();
    },
    says: /signature/,
  },
];

test.each(ATTACKS)("rejects $what", async ({ token, says }) => {
  expect(await rejection(token())).toMatch(says);
});

test.each(["", "e30", "a.b.c", `${encoded("{}")}.${encoded("null")}.`])(
  "a text that is no token names no issuer: %s",
  async (text) => {
    await expect(namedIssuer(text)).rejects.toBeInstanceOf(TokenRejected);
  },
);

test("many tokens need one request for keys", async () => {
  await Promise.all([1, 2, 3].map(() => verify(issuer.token())));
  await verify(issuer.token());
  expect(issuer.requests).toBe(1);
});

test("a new key is requested when its first token arrives, an unknown one only every so often", async () => {
  await verify(issuer.token());
  const next = await newSigningKey("next");
  issuer.keys = [issuer.key.publicJwk, next.publicJwk];
  const token = issuer.token({}, {}, next);
  expect(await rejection(token)).toMatch(/does not publish/);
  expect(issuer.requests).toBe(1);
  now += REQUEST_PAUSE_MS;
  await verify(token);
  expect(issuer.requests).toBe(2);
  for (const kid of ["a", "b", "c"]) {
    await rejection(issuer.token({}, { kid }));
  }
  expect(issuer.requests).toBe(2);
});

test("a key that the issuer withdrew ends after the time of the cache", async () => {
  const token = issuer.token();
  await verify(token);
  issuer.keys = [(await newSigningKey("next")).publicJwk];
  await verify(token);
  now += REFRESH_MS + 1;
  // The first one after that time starts the request.
  await verify(token);
  await expect
    .poll(() => verify(token).catch((error: unknown) => error))
    .toBeInstanceOf(TokenRejected);
});

test("while the issuer is unavailable, its keys are used for a bounded time, and unknown ones are neither accepted nor invalid", async () => {
  const token = issuer.token({ exp: seconds(10_000) });
  await verify(token);
  issuer.status = 500;
  now += KEEP_MS - 1;
  await verify(token);
  await expect(verify(issuer.token({}, { kid: "new" }))).rejects.toThrow(
    IssuerUnavailable,
  );
  now += 1;
  await expect(verify(token)).rejects.toThrow(/unavailable \(status 500\)/);
  issuer.status = 200;
  now += REQUEST_PAUSE_MS;
  await verify(token);
});

test("requests to an unavailable issuer are bounded", async () => {
  issuer.status = 503;
  for (let at = 0; at < 5; at++) {
    await expect(verify(issuer.token())).rejects.toThrow(IssuerUnavailable);
  }
  issuer.status = 200;
  await expect(verify(issuer.token())).rejects.toThrow(IssuerUnavailable);
  now += REQUEST_PAUSE_MS;
  await verify(issuer.token());
});

test("keys at a configured address need no discovery document", async () => {
  keys = keysOf(`${issuer.issuer}/keys`);
  await verify(issuer.token());
});
