import { createHash, timingSafeEqual } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import type { FastifyRequest } from "fastify";
import type { Credentials } from "../../supervisor/credentials.ts";
import { Attempts } from "./attempts.ts";
import { cookieIn } from "../../core/cookies.ts";
import { isOwnHost } from "./own-host.ts";
import {
  openSessions,
  type Sessions,
} from "../../supervisor/history/sessions.ts";
import { SignInLinks, type SignInLink } from "./sign-in-links.ts";

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
  /** Too many failed attempts: the password was not compared. */
  | { readonly kind: "wait"; readonly ms: number };

export interface AuthenticatorOptions {
  readonly credentials: () => Credentials;
  /** Sessions are stored in the history file. */
  readonly db: DatabaseSync;
  /** Where browsers reach the supervisor, if not by address or local name. */
  readonly publicUrl: string | undefined;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * Authenticates requests. The network address proves nothing: other users, containers and proxies reach a loopback address,
 * too. Pages of other origins cannot change anything, even in the operator's browser.
 */
export class Authenticator {
  readonly #credentials: () => Credentials;
  readonly #publicUrl: string | undefined;
  readonly #sessions: Sessions;
  readonly #links: SignInLinks;
  readonly #attempts: Attempts;

  constructor({ credentials, db, publicUrl, now }: AuthenticatorOptions) {
    const key = () => credentials().operatorPassword;
    this.#credentials = credentials;
    this.#publicUrl = publicUrl;
    this.#sessions = openSessions(db, key, now);
    this.#links = new SignInLinks(key, now);
    this.#attempts = new Attempts(now);
  }

  judge(request: FastifyRequest, audience: Audience): Access {
    if (isForeignChange(request)) {
      return { kind: "foreign-page" };
    }
    if (audience === "public") {
      return { kind: "allowed" };
    }
    const { authorization, host } = request.headers;
    const own = isOwnHost(host, this.#publicUrl);
    if (own && (audience === "sign-in" || this.isSignedIn(request))) {
      return { kind: "allowed" };
    }
    // Programs send credentials only to their configured address, so any Host is accepted.
    if (authorization !== undefined && audience !== "sign-in") {
      return this.#judgeAuthorization(request, authorization, audience);
    }
    return { kind: own ? "unauthenticated" : "foreign-host" };
  }

  signIn(request: FastifyRequest, password: string): SignIn {
    const { operatorPassword } = this.#credentials();
    const trial = this.#tryPassword(
      request,
      isSameText(password, operatorPassword),
    );
    if (trial === "right") {
      return { kind: "open", token: this.#sessions.start() };
    }
    return trial === "wrong" ? { kind: "wrong" } : { kind: "wait", ...trial };
  }

  makeLink(): SignInLink {
    return this.#links.make();
  }

  /** A session's token; undefined when the link is used, expired or unknown. */
  signInByLink(linkToken: string): string | undefined {
    return this.#links.use(linkToken) ? this.#sessions.start() : undefined;
  }

  signOut(request: FastifyRequest): void {
    const token = sessionTokenOf(request);
    if (token !== undefined) {
      this.#sessions.end(token);
    }
  }

  /** Ends every session and unused link; returns the number of sessions. */
  signOutAll(): number {
    this.#links.endAll();
    return this.#sessions.endAll();
  }

  /** Whether the request has a session's cookie. */
  isSignedIn(request: FastifyRequest): boolean {
    const token = sessionTokenOf(request);
    return token !== undefined && this.#sessions.isOpen(token);
  }

  /** Compares a password, and counts the attempt. */
  #tryPassword(
    request: FastifyRequest,
    isRight: boolean,
  ): "right" | "wrong" | { readonly ms: number } {
    const address = request.ip;
    const ms = this.#attempts.waitOf(address);
    if (ms > 0) {
      return { ms };
    }
    if (isRight) {
      this.#attempts.succeeded(address);
    } else {
      this.#attempts.failed(address);
    }
    return isRight ? "right" : "wrong";
  }

  #judgeAuthorization(
    request: FastifyRequest,
    authorization: string,
    audience: Audience,
  ): Access {
    const { operatorPassword, cliToken, metricsToken } = this.#credentials();
    const [, scheme = "", value = ""] =
      /^(\S+)\s*(.*)$/.exec(authorization) ?? [];
    if (scheme.toLowerCase() === "bearer") {
      // Tokens are too long to guess, so wrong ones cause no wait: an outdated token must not lock the operator out.
      const known =
        isSameText(value, cliToken) ||
        (audience === "metrics" && isSameText(value, metricsToken));
      return { kind: known ? "allowed" : "unauthenticated" };
    }
    const given = Buffer.from(value, "base64").toString("utf8");
    const trial = this.#tryPassword(
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
}

/**
 * The name of the session's cookie. Browsers share cookies among all ports of a host, so two supervisors behind one name (of
 * two homes, or through two ssh tunnels) would overwrite each other's cookie.
 */
export function cookieNameOf(request: FastifyRequest): string {
  const port = /:(\d+)$/.exec(request.headers.host ?? "")?.[1];
  return port === undefined ? "hearth_session" : `hearth_session_${port}`;
}

function sessionTokenOf(request: FastifyRequest): string | undefined {
  return cookieIn(request.headers.cookie, cookieNameOf(request));
}

function isForeignChange(request: FastifyRequest): boolean {
  return (
    request.method !== "GET" &&
    request.method !== "HEAD" &&
    isForeignPage(request)
  );
}

/** Browsers send the origin of the page; tools do not. */
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

/** Compares hashes, so that timing reveals neither content nor length. */
function isSameText(a: string, b: string): boolean {
  const [left, right] = [a, b].map((text) =>
    createHash("sha256").update(text).digest(),
  );
  return (
    left !== undefined && right !== undefined && timingSafeEqual(left, right)
  );
}
