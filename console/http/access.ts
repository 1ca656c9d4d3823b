import { createHash, timingSafeEqual } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import type { FastifyRequest } from "fastify";
import type { Credentials } from "../../supervisor/credentials.ts";
import { countAttempts } from "./attempts.ts";
import { isOwnHost } from "./own-host.ts";
import { openSessions } from "../../supervisor/history/sessions.ts";
import { openSignInLinks, type SignInLink } from "./sign-in-links.ts";

/**
 * What a route requires: `operator` (the default) a session's cookie, the operator password by Basic authentication, or the token
 * of the commands; `metrics` one of these or the token of /metrics; `sign-in` only one of the supervisor's own names as Host;
 * `public` nothing.
 */
export type Audience = "operator" | "metrics" | "sign-in" | "public";

export type Access =
  | { readonly kind: "allowed" }
  | { readonly kind: "unauthenticated" }
  | { readonly kind: "foreign-page" }
  | { readonly kind: "foreign-host" }
  | { readonly kind: "wait"; readonly ms: number };

export type SignIn =
  | { readonly kind: "open"; readonly token: string }
  | { readonly kind: "wrong" }
  /** Too many wrong passwords: this one was not compared. */
  | { readonly kind: "wait"; readonly ms: number };

export interface DoorParts {
  readonly credentials: () => Credentials;
  /** Sessions are kept in the history file. */
  readonly db: DatabaseSync;
  /** Where browsers reach the supervisor, if not at an address or a local name. */
  readonly publicUrl: string | undefined;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * Authenticates requests. Their network address proves nothing: other users, containers and proxies reach a loopback address,
 * too. A web page of another origin may change nothing, even in the operator's browser.
 */
export interface Door {
  readonly judge: (request: FastifyRequest, audience: Audience) => Access;
  readonly signIn: (request: FastifyRequest, password: string) => SignIn;
  readonly makeLink: () => SignInLink;
  /** A session's token; undefined when the link was used, is too old, or never was one. */
  readonly signInByLink: (linkToken: string) => string | undefined;
  readonly signOut: (request: FastifyRequest) => void;
  /** Ends every session and every link that was not used; how many sessions there were. */
  readonly signOutAll: () => number;
  /** Whether this request came in by a cookie, so that there is something to sign out of. */
  readonly isSignedIn: (request: FastifyRequest) => boolean;
}

export function openDoor(parts: DoorParts): Door {
  const { credentials, now } = parts;
  const key = () => credentials().operatorPassword;
  const sessions = openSessions(parts.db, key, now);
  const links = openSignInLinks(key, now);
  const attempts = countAttempts(now);

  function isSignedIn(request: FastifyRequest): boolean {
    const token = sessionTokenOf(request);
    return token !== undefined && sessions.isOpen(token);
  }

  /** Compares a password, and counts the attempt. */
  function tryPassword(
    request: FastifyRequest,
    isRight: boolean,
  ): "right" | "wrong" | { readonly ms: number } {
    const address = request.ip;
    const ms = attempts.waitOf(address);
    if (ms > 0) {
      return { ms };
    }
    if (isRight) {
      attempts.succeeded(address);
    } else {
      attempts.failed(address);
    }
    return isRight ? "right" : "wrong";
  }

  function judgeAuthorization(
    request: FastifyRequest,
    authorization: string,
    audience: Audience,
  ): Access {
    const { operatorPassword, cliToken, metricsToken } = credentials();
    const [, scheme = "", value = ""] =
      /^(\S+)\s*(.*)$/.exec(authorization) ?? [];
    if (scheme.toLowerCase() === "bearer") {
      // Tokens are too long to be guessed, so wrong ones cost no wait: an outdated one must not lock the operator out.
      const known =
        isSameText(value, cliToken) ||
        (audience === "metrics" && isSameText(value, metricsToken));
      return { kind: known ? "allowed" : "unauthenticated" };
    }
    const given = Buffer.from(value, "base64").toString("utf8");
    const trial = tryPassword(
      request,
      scheme.toLowerCase() === "basic" &&
        isSameText(given, `operator:${operatorPassword}`),
    );
    if (trial === "right") {
      return { kind: "allowed" };
    }
    return trial === "wrong"
      ? { kind: "unauthenticated" }
      : { kind: "wait", ...trial };
  }

  return {
    judge: (request, audience) => {
      if (isForeignChange(request)) {
        return { kind: "foreign-page" };
      }
      if (audience === "public") {
        return { kind: "allowed" };
      }
      const { authorization, host } = request.headers;
      const own = isOwnHost(host, parts.publicUrl);
      if (own && (audience === "sign-in" || isSignedIn(request))) {
        return { kind: "allowed" };
      }
      // Programs send it only to the address that they were given, so any Host is accepted.
      if (authorization !== undefined && audience !== "sign-in") {
        return judgeAuthorization(request, authorization, audience);
      }
      return { kind: own ? "unauthenticated" : "foreign-host" };
    },
    signIn: (request, given) => {
      const { operatorPassword } = credentials();
      const trial = tryPassword(request, isSameText(given, operatorPassword));
      if (trial === "right") {
        return { kind: "open", token: sessions.begin() };
      }
      return trial === "wrong" ? { kind: "wrong" } : { kind: "wait", ...trial };
    },
    makeLink: links.make,
    signInByLink: (token) => (links.use(token) ? sessions.begin() : undefined),
    signOut: (request) => {
      const token = sessionTokenOf(request);
      if (token !== undefined) {
        sessions.end(token);
      }
    },
    signOutAll: () => {
      links.endAll();
      return sessions.endAll();
    },
    isSignedIn,
  };
}

/**
 * The name of the session's cookie. Browsers keep one jar for all ports of a name, so that two supervisors behind one name (of
 * two homes, or through two ssh tunnels) would take each other's cookie away.
 */
export function cookieNameOf(request: FastifyRequest): string {
  const port = /:(\d+)$/.exec(request.headers.host ?? "")?.[1];
  return port === undefined ? "hearth_session" : `hearth_session_${port}`;
}

function sessionTokenOf(request: FastifyRequest): string | undefined {
  const start = `${cookieNameOf(request)}=`;
  return (request.headers.cookie ?? "")
    .split(";")
    .map((each) => each.trim())
    .find((each) => each.startsWith(start))
    ?.slice(start.length);
}

function isForeignChange(request: FastifyRequest): boolean {
  return (
    request.method !== "GET" &&
    request.method !== "HEAD" &&
    isForeignPage(request)
  );
}

/** Browsers name the page that sends a request; tools do not. */
function isForeignPage(request: FastifyRequest): boolean {
  const site = request.headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none") {
    return true;
  }
  const { origin } = request.headers;
  if (origin === undefined) {
    return false;
  }
  return !URL.canParse(origin) || new URL(origin).host !== request.headers.host;
}

/** Hashed first, so that neither content nor length shows in the time it takes. */
function isSameText(a: string, b: string): boolean {
  const [left, right] = [a, b].map((text) =>
    createHash("sha256").update(text).digest(),
  );
  return (
    left !== undefined && right !== undefined && timingSafeEqual(left, right)
  );
}
