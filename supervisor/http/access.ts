import { timingSafeEqual, createHash } from "node:crypto";
import type { FastifyRequest } from "fastify";

export type Access = "allowed" | "needs-password" | "foreign-page";

const forwarded = [
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-real-ip",
  "via",
];

/**
 * Who may ask: anybody on this machine itself (loopback address, loopback Host, nothing forwarded), else the operator by
 * Basic authentication. A web page of another origin may change nothing, wherever its reader sits.
 */
export function judgeAccess(
  request: FastifyRequest,
  operatorPassword: string | undefined,
): Access {
  if (
    request.method !== "GET" &&
    request.method !== "HEAD" &&
    isForeignPage(request)
  )
    return "foreign-page";
  if (isLocal(request)) return "allowed";
  return operatorPassword !== undefined &&
    carriesPassword(request.headers.authorization, operatorPassword)
    ? "allowed"
    : "needs-password";
}

function isLocal(request: FastifyRequest): boolean {
  return (
    isLoopback(request.socket.remoteAddress ?? "") &&
    isLoopbackHost(request.headers.host ?? "") &&
    !forwarded.some((name) => name in request.headers)
  );
}

function isLoopback(address: string): boolean {
  return /^(::ffff:)?127\./.test(address) || address === "::1";
}

function isLoopbackHost(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i.test(host);
}

/** Browsers name the page that sends a request; tools do not. */
function isForeignPage(request: FastifyRequest): boolean {
  const site = request.headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none")
    return true;
  const { origin } = request.headers;
  if (origin === undefined) return false;
  return !URL.canParse(origin) || new URL(origin).host !== request.headers.host;
}

function carriesPassword(
  authorization: string | undefined,
  password: string,
): boolean {
  const encoded = /^Basic\s+(\S+)$/i.exec(authorization ?? "")?.[1] ?? "";
  return sameText(
    Buffer.from(encoded, "base64").toString("utf8"),
    `operator:${password}`,
  );
}

/** Hashed first, so that neither content nor length shows in the time it takes. */
function sameText(a: string, b: string): boolean {
  const [left, right] = [a, b].map((text) =>
    createHash("sha256").update(text).digest(),
  );
  return (
    left !== undefined && right !== undefined && timingSafeEqual(left, right)
  );
}
