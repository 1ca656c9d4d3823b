import { createHash, createHmac, pbkdf2Sync } from "node:crypto";

const ITERATIONS = 4096;

/**
 * The SCRAM-SHA-256 verifier that Postgres stores for a password (RFC 5803's form). Given to ALTER ROLE instead of the
 * password, so that no server log can ever hold the password. The salt comes from role and password: the same pair gives
 * the same verifier, and a changed one is seen. Passwords are ASCII, for which SASLprep changes nothing.
 */
export function scramVerifier(role: string, password: string): string {
  const salt = createHash("sha256")
    .update(`hearth:${role}:${password}`)
    .digest()
    .subarray(0, 16);
  const salted = pbkdf2Sync(password, salt, ITERATIONS, 32, "sha256");
  const clientKey = hmac(salted, "Client Key");
  const storedKey = createHash("sha256").update(clientKey).digest("base64");
  const serverKey = hmac(salted, "Server Key").toString("base64");
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString("base64")}$${storedKey}:${serverKey}`;
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
