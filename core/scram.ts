import { createHmac, hash, pbkdf2Sync } from "node:crypto";

const ITERATIONS = 4096;

/**
 * The SCRAM-SHA-256 verifier that Postgres stores for a password (RFC 5803). Roles are set with the verifier instead of the
 * password, because Postgres logs failed statements in full. The salt is derived from role and password, so the same pair gives
 * the same verifier and only a changed password is a change. Passwords are ASCII, which SASLprep leaves unchanged.
 */
export function scramVerifier(role: string, password: string): string {
  const salt = hash("sha256", `hearth:${role}:${password}`, "buffer").subarray(
    0,
    16,
  );
  return buildVerifier(password, ITERATIONS, salt);
}

/** Whether a verifier that Postgres stores, with any salt, is of this password. */
export function isVerifierOf(password: string, verifier: string): boolean {
  const [, iterations, salt] =
    /^SCRAM-SHA-256\$(\d+):([^$]+)\$/.exec(verifier) ?? [];
  return (
    salt !== undefined &&
    verifier ===
      buildVerifier(password, Number(iterations), Buffer.from(salt, "base64"))
  );
}

function buildVerifier(
  password: string,
  iterations: number,
  salt: Buffer,
): string {
  const salted = pbkdf2Sync(password, salt, iterations, 32, "sha256");
  const storedKey = hash("sha256", hmac(salted, "Client Key"), "base64");
  const serverKey = hmac(salted, "Server Key").toString("base64");
  return `SCRAM-SHA-256$${iterations}:${salt.toString("base64")}$${storedKey}:${serverKey}`;
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
