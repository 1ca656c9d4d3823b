import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { ModelRequest, MockOptions, ModelReply } from "./mock-model.ts";

export type Json = Readonly<Record<string, unknown>>;

/** One provider's wire format, as the provider itself serves it. */
export interface ProviderFormat {
  /** null: the credential is valid. */
  refuse(headers: IncomingHttpHeaders, url: URL): Refusal | null;
  /** Why the provider would reject the body; null for a valid one. */
  mistakeIn(body: Json): string | null;
  parse(body: Json): ModelRequest;
  answer(reply: ModelReply, body: Json): Json;
  stream(reply: ModelReply, body: Json): Iterable<string>;
  error(refusal: Refusal): unknown;
}

interface Refusal {
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
  { retryAfter }: MockOptions = {},
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
