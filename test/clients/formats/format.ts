import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { Asked, PlayedWishes, Said } from "./played-model.ts";

export type Json = Readonly<Record<string, unknown>>;

/** One provider's wire format, as the provider itself serves it. */
export interface ProviderFormat {
  /** null: the credential is right and in its place. */
  refuse(headers: IncomingHttpHeaders, url: URL): Refusal | null;
  /** What is wrong with a body that the provider would not take. */
  mistakeIn(body: Json): string | null;
  asked(body: Json): Asked;
  answer(said: Said, body: Json): Json;
  stream(said: Said, body: Json): Iterable<string>;
  error(refusal: Refusal): unknown;
}

export interface Refusal {
  readonly status: number;
  readonly message: string;
}

/** The secret that the gateway sends to the providers of the tests. */
export const PROVIDER_SECRET = "provider-secret-key-of-tests";

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, {
    "content-type": "application/json",
    ...headers,
  });
  response.end(JSON.stringify(body));
}

export function sendRefusal(
  response: ServerResponse,
  format: ProviderFormat,
  refusal: Refusal,
  { retryAfter }: PlayedWishes = {},
): void {
  sendJson(
    response,
    refusal.status,
    format.error(refusal),
    retryAfter === undefined ? {} : { "retry-after": String(retryAfter) },
  );
}

export function listOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.map(recordOf) : [];
}

export function recordOf(value: unknown): Json {
  return typeof value === "object" && value !== null ? (value as Json) : {};
}
