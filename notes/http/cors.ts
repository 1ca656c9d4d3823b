import type { IncomingMessage } from "node:http";

const METHODS = [
  "CONNECT",
  "COPY",
  "DELETE",
  "GET",
  "HEAD",
  "OPTIONS",
  "POST",
  "PUT",
  "TRACE",
];

/** Request headers a page may send: CouchDB's own list. */
const REQUEST_HEADERS = new Set([
  "accept",
  "accept-language",
  "authorization",
  "content-length",
  "content-range",
  "content-type",
  "destination",
  "expires",
  "if-match",
  "last-modified",
  "origin",
  "pragma",
  "x-couch-full-commit",
  "x-couch-id",
  "x-couch-persist",
  "x-couchdb-www-authenticate",
  "x-http-method-override",
  "x-requested-with",
  "x-couchdb-vhost-path",
]);

const EXPOSED_HEADERS =
  "content-type, cache-control, accept-ranges, etag, server, x-couch-request-id, x-couch-update-newrev, x-couchdb-body-time";

type Headers = Readonly<Record<string, string>>;

/** Headers of every response (errors included) to a page of an allowed origin; none for other origins. */
export function corsHeaders(
  request: IncomingMessage,
  origins: readonly string[],
): Headers {
  const origin = request.headers.origin;
  if (origin === undefined || !isAllowed(origin, origins)) {
    return {};
  }
  return {
    "access-control-allow-credentials": "true",
    "access-control-allow-origin": origin,
    "access-control-expose-headers": EXPOSED_HEADERS,
  };
}

/** Headers of the 204 response to a preflight; undefined for other requests and for a preflight that is not allowed. */
export function preflightHeaders(
  request: IncomingMessage,
  origins: readonly string[],
): Headers | undefined {
  const { origin } = request.headers;
  const method = request.headers["access-control-request-method"];
  const requestedHeaders =
    request.headers["access-control-request-headers"] ?? "";
  if (request.method !== "OPTIONS" || origin === undefined) {
    return undefined;
  }
  if (!isAllowed(origin, origins)) {
    return undefined;
  }
  if (method === undefined || !METHODS.includes(method)) {
    return undefined;
  }
  const names = requestedHeaders
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "");
  if (!names.every((name) => REQUEST_HEADERS.has(name))) {
    return undefined;
  }
  return {
    "access-control-allow-credentials": "true",
    "access-control-allow-headers": requestedHeaders,
    "access-control-allow-methods": METHODS.join(", "),
    "access-control-allow-origin": origin,
    "access-control-max-age": "600",
  };
}

function isAllowed(origin: string, origins: readonly string[]): boolean {
  return origins.includes("*") || origins.includes(origin);
}
