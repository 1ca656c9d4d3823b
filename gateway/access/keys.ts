import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

const KEY_BYTES = 16;

/** A new virtual key: `sk-` and 22 URL-safe characters, 128 random bits. */
export function newKey(): string {
  return `sk-${randomBytes(KEY_BYTES).toString("base64url")}`;
}

/** SHA-256 in lower-case hex: the only form in which a key is stored or named. */
export function hashKey(key: string): string {
  return hash("sha256", key);
}

export function isKeyHash(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/** `sk-...last4`, the name that lists show. */
export function keyName(key: string): string {
  return `sk-...${key.slice(-4)}`;
}

const BEARER = "bearer ";

/** The credential of a request: `x-litellm-api-key`, which clients send beside a provider's own `authorization`, else Bearer, else the headers that other SDKs use, else whatever `authorization` holds. null when there is none. */
export function readKey(headers: IncomingHttpHeaders): string | null {
  const { authorization, "x-litellm-api-key": litellm } = headers;
  if (typeof litellm === "string") {
    return afterBearer(litellm) ?? litellm.trim();
  }
  const bearer =
    authorization === undefined ? null : afterBearer(authorization);
  if (bearer !== null) {
    return bearer;
  }
  for (const name of ["x-api-key", "api-key", "x-goog-api-key"]) {
    const value = headers[name];
    if (typeof value === "string") {
      return value.trim();
    }
  }
  return authorization ?? null;
}

function afterBearer(value: string): string | null {
  return value.slice(0, BEARER.length).toLowerCase() === BEARER
    ? value.slice(BEARER.length).trim()
    : null;
}

/** Compares two hashes of {@link hashKey} in a time that depends on neither. */
export function sameHash(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(one), Buffer.from(other));
}
