import type { JSONWebKeySet, JWTVerifyGetKey } from "jose";
import { isRecord } from "../json.ts";
import { textOf } from "../failure.ts";
import { isLoopback } from "../loopback.ts";
import { IssuerUnavailable, TokenRejected } from "./token-errors.ts";

interface SigningKeysOptions {
  readonly issuer: string;
  /** Where the keys are; null: the issuer's discovery document says so. */
  readonly jwksUri: string | null;
  /** After this time the keys are requested again, in ms. */
  readonly refreshAfterMs: number;
  /** While the issuer is unavailable, its keys are used for this time after the last answer, in ms. */
  readonly keepMs: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Unknown keys and failed requests cause another request only after this time: a caller cannot make us flood an issuer. */
export const REQUEST_PAUSE_MS = 30_000;
const TIMEOUT_MS = 5_000;
const MAX_BYTES = 1_000_000;

interface Keys {
  readonly get: JWTVerifyGetKey;
  readonly at: number;
}

/** The keys with which an issuer signs, requested at the first token and again for a new one: it may rotate them. */
export class SigningKeys {
  readonly #options: SigningKeysOptions;
  #keys: Keys | undefined;
  #loading: Promise<Keys> | undefined;
  #requestedAt = -Infinity;
  #lastFailure: unknown;

  constructor(options: SigningKeysOptions) {
    this.#options = options;
  }

  /** Throws an IssuerUnavailable without keys, and a TokenRejected for a token signed with a key that the issuer does not have. */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    const { errors } = await import("jose");
    const keys = await this.#current();
    try {
      return await keys.get(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) {
        throw error;
      }
    }
    const newer = await this.#newer();
    return newer.get(header, token);
  };

  async #current(): Promise<Keys> {
    const known = this.#keys;
    const { now, refreshAfterMs, keepMs } = this.#options;
    // abs: the clock may have been set back.
    const age = Math.abs(now() - (known?.at ?? -Infinity));
    if (known === undefined || age >= keepMs) {
      return this.#load();
    }
    if (age >= refreshAfterMs) {
      // Until the answer is there, the known ones are used.
      this.#load().catch(() => undefined);
    }
    return known;
  }

  #newer(): Promise<Keys> {
    if (this.#isPausing() && this.#lastFailure === undefined) {
      throw new TokenRejected(
        "The token is signed with a key that its issuer does not publish. Request a new token.",
      );
    }
    return this.#load();
  }

  #isPausing(): boolean {
    const elapsed = this.#options.now() - this.#requestedAt;
    return (
      this.#loading === undefined && elapsed >= 0 && elapsed < REQUEST_PAUSE_MS
    );
  }

  #load(): Promise<Keys> {
    if (this.#isPausing() && this.#lastFailure !== undefined) {
      return Promise.reject(this.#unavailable());
    }
    this.#loading ??= this.#request().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async #request(): Promise<Keys> {
    const { now } = this.#options;
    this.#requestedAt = now();
    try {
      const { createLocalJWKSet } = await import("jose");
      const set = await fetchJson(new URL(await this.#addressOfKeys()));
      const get = createLocalJWKSet(set as unknown as JSONWebKeySet);
      this.#keys = { get, at: now() };
      this.#lastFailure = undefined;
      return this.#keys;
    } catch (error) {
      this.#lastFailure = error;
      throw this.#unavailable();
    }
  }

  #unavailable(): IssuerUnavailable {
    return new IssuerUnavailable(
      `The keys of ${this.#options.issuer} are unavailable (${reasonOf(this.#lastFailure)}), so the token cannot be verified. Try again in a moment.`,
      { cause: this.#lastFailure },
    );
  }

  async #addressOfKeys(): Promise<string> {
    const { issuer, jwksUri } = this.#options;
    if (jwksUri !== null) {
      return jwksUri;
    }
    const document = await fetchJson(
      new URL(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`),
    );
    if (document["issuer"] !== issuer) {
      throw new Error("its discovery document names another issuer");
    }
    const uri = document["jwks_uri"];
    if (typeof uri !== "string" || !isTrustworthy(uri)) {
      throw new Error("its discovery document has no https address of keys");
    }
    return uri;
  }
}

/** Whether an answer from an address can only be its owner's: by https, or on this machine. */
export function isTrustworthy(address: string): boolean {
  return (
    URL.canParse(address) &&
    (address.startsWith("https://") ||
      (address.startsWith("http://") && isLoopback(address)))
  );
}

/** A JSON object. Redirects are errors: they could lead to an address that is not trustworthy. */
async function fetchJson(url: URL): Promise<Record<string, unknown>> {
  const answer = await fetch(url, {
    redirect: "error",
    signal: AbortSignal.timeout(TIMEOUT_MS),
    headers: { accept: "application/json" },
  });
  if (!answer.ok || answer.body === null) {
    await answer.body?.cancel();
    throw new Error(`status ${answer.status}`);
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of answer.body) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BYTES) {
      throw new Error("its answer is too large");
    }
    chunks.push(chunk);
  }
  const value: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"));
  if (!isRecord(value)) {
    throw new Error("its answer is not a JSON object");
  }
  return value;
}

/** ECONNREFUSED, "no answer in time", "status 502". */
function reasonOf(error: unknown): string {
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return "no answer in time";
  }
  if (error instanceof SyntaxError) {
    return "its answer is not JSON";
  }
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && "code" in cause
    ? String(cause.code)
    : textOf(error);
}
