import { createHmac } from "node:crypto";
import type { Secret } from "../config/secret.ts";

/** Before a key in base64, as Standard Webhooks writes secrets. */
const ENCODED = "whsec_";

/**
 * The headers by which a receiver verifies a request, as the Standard Webhooks specification defines them: HMAC-SHA256 over
 * `ID.SECONDS.BODY`. https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export function signedHeaders(
  secret: Secret | null,
  id: string,
  now: number,
  body: string,
): Record<string, string> {
  const seconds = String(Math.floor(now / 1_000));
  const headers = { "webhook-id": id, "webhook-timestamp": seconds };
  if (secret === null) {
    return headers;
  }
  const signature = createHmac("sha256", keyOf(secret.reveal()))
    .update(`${id}.${seconds}.${body}`)
    .digest("base64");
  return { ...headers, "webhook-signature": `v1,${signature}` };
}

function keyOf(secret: string): Buffer {
  return secret.startsWith(ENCODED)
    ? Buffer.from(secret.slice(ENCODED.length), "base64")
    : Buffer.from(secret);
}
