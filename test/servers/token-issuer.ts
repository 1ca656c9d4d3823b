import { sign as signBytes, type KeyObject } from "node:crypto";
import { createServer } from "node:http";
import { exportJWK, generateKeyPair, type JWK } from "jose";
import { freePort, listen } from "./ports.ts";

export interface SigningKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: KeyObject;
  readonly publicJwk: JWK;
}

/** An issuer whose tokens a test writes byte by byte, with its keys at a real address. */
export interface TokenIssuer {
  readonly issuer: string;
  /** What it publishes. */
  keys: readonly JWK[];
  /** Status of its answers. */
  status: number;
  /** Requests for its keys so far. */
  requests: number;
  readonly key: SigningKey;
  /** A token for the audience `gateway` of the account `anna`, valid for an hour, unless `claims` or `header` say otherwise. */
  token(
    claims?: Readonly<Record<string, unknown>>,
    header?: Readonly<Record<string, unknown>>,
    key?: SigningKey,
  ): string;
  readonly down: () => Promise<void>;
  readonly up: () => Promise<void>;
}

export async function newSigningKey(
  kid: string,
  alg: "RS256" | "ES256" = "RS256",
): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, {
    extractable: true,
  });
  const { KeyObject: Keys } = await import("node:crypto");
  return {
    kid,
    alg,
    privateKey: Keys.from(privateKey),
    publicJwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" },
  };
}

export async function startTokenIssuer(kid = "first"): Promise<TokenIssuer> {
  const key = await newSigningKey(kid);
  const server = createServer((request, response) => {
    const isKeys = request.url === "/keys";
    issuer.requests += isKeys ? 1 : 0;
    response.writeHead(issuer.status, { "content-type": "application/json" });
    response.end(
      JSON.stringify(
        isKeys
          ? { keys: issuer.keys }
          : { issuer: issuer.issuer, jwks_uri: `${issuer.issuer}/keys` },
      ),
    );
  });
  const port = await listen(server, { port: await freePort() });
  const issuer: TokenIssuer = {
    issuer: `http://127.0.0.1:${port}`,
    keys: [key.publicJwk],
    status: 200,
    requests: 0,
    key,
    token(claims = {}, header = {}, signer = key) {
      const now = Math.floor(Date.now() / 1000);
      return signedToken(
        JSON.stringify({ alg: signer.alg, kid: signer.kid, ...header }),
        JSON.stringify({
          iss: issuer.issuer,
          aud: "gateway",
          sub: "anna",
          iat: now,
          exp: now + 3600,
          ...claims,
        }),
        signer,
      );
    },
    down: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
    up: async () => void (await listen(server, { port })),
  };
  return issuer;
}

/** A token of these texts, signed whatever they say. */
export function signedToken(
  header: string,
  payload: string,
  { privateKey, alg }: SigningKey,
): string {
  const input = `${encoded(header)}.${encoded(payload)}`;
  const signature = signBytes("sha256", Buffer.from(input), {
    key: privateKey,
    ...(alg === "ES256" ? { dsaEncoding: "ieee-p1363" as const } : {}),
  });
  return `${input}.${signature.toString("base64url")}`;
}

export function encoded(text: string): string {
  return Buffer.from(text).toString("base64url");
}
