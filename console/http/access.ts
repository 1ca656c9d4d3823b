import type { DatabaseSync } from "node:sqlite";
import type { FastifyRequest } from "fastify";
import type { Credentials } from "../../supervisor/credentials.ts";
import { Attempts } from "./attempts.ts";
import { cookieIn } from "../../core/cookies.ts";
import { OPERATOR } from "../../supervisor/history/author.ts";
import {
  openSessions,
  type Sessions,
} from "../../supervisor/history/sessions.ts";
import { includesRole, type Role } from "../../supervisor/sign-in/roles.ts";
import type { Caller, UserSignIn } from "../sign-in/user-sign-in.ts";
import { isOwnHost } from "./own-host.ts";
import type { Requirement } from "./route-roles.ts";
import { isSameText } from "./same-text.ts";
import { SignInLinks, type SignInLink } from "./sign-in-links.ts";

/** With the operator password, a sign-in link or the token of the commands. */
const OPERATOR_CALLER: Caller = { role: "admin", name: OPERATOR };
const OPERATOR_ADMITTED: Access = {
  kind: "allowed",
  caller: OPERATOR_CALLER,
  signedIn: false,
};

export type Access =
  | {
      readonly kind: "allowed";
      /** Null where the route does not ask for one. */
      readonly caller: Caller | null;
      /** By the cookie of a session. */
      readonly signedIn: boolean;
    }
  /** The caller lacks the role. */
  | {
      readonly kind: "forbidden";
      readonly caller: Caller;
      readonly needed: Role;
    }
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
  readonly users: UserSignIn;
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
  readonly #users: UserSignIn;
  readonly #links: SignInLinks;
  readonly #attempts: Attempts;

  constructor({
    credentials,
    db,
    users,
    publicUrl,
    now,
  }: AuthenticatorOptions) {
    const key = () => credentials().operatorPassword;
    this.#credentials = credentials;
    this.#publicUrl = publicUrl;
    this.#sessions = openSessions(db, key, now);
    this.#users = users;
    this.#links = new SignInLinks(key, now);
    this.#attempts = new Attempts(now);
  }

  async judge(
    request: FastifyRequest,
    requirement: Requirement,
  ): Promise<Access> {
    if (isForeignChange(request)) {
      return { kind: "foreign-page" };
    }
    if (requirement === "public") {
      return { kind: "allowed", caller: null, signedIn: false };
    }
    const { authorization, host } = request.headers;
    const own = isOwnHost(host, this.#publicUrl);
    const user = own ? await this.sessionCaller(request) : undefined;
    if (requirement === "sign-in") {
      return own
        ? { kind: "allowed", caller: null, signedIn: user !== undefined }
        : { kind: "foreign-host" };
    }
    if (user !== undefined) {
      return admit(user, requirement, true);
    }
    // Programs send credentials only to their configured address, so any Host is accepted.
    if (authorization !== undefined) {
      return this.#judgeAuthorization(request, authorization, requirement);
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
      return { kind: "open", token: this.#startSession(request) };
    }
    return trial === "wrong" ? { kind: "wrong" } : { kind: "wait", ...trial };
  }

  makeLink(): SignInLink {
    return this.#links.make();
  }

  /** A session's token; undefined when the link is used, expired or unknown. */
  signInByLink(request: FastifyRequest, linkToken: string): string | undefined {
    return this.#links.use(linkToken) ? this.#startSession(request) : undefined;
  }

  /** Ends the session of a browser; where it signs out of its provider, too, if there is such a page. */
  async signOut(
    request: FastifyRequest,
    returnTo: string,
  ): Promise<string | undefined> {
    const token = sessionTokenOf(request);
    if (token === undefined) {
      return undefined;
    }
    this.#sessions.end(token);
    return this.#users.signOut(token, returnTo);
  }

  /** Ends the session that a browser had before it signed in again: no session id survives a sign-in. */
  endFormerSession(request: FastifyRequest): void {
    const token = sessionTokenOf(request);
    if (token !== undefined) {
      this.#sessions.end(token);
      this.#users.endSession(token);
    }
  }

  /** Ends the session of a user's commands. */
  endBearerSession({ headers }: FastifyRequest): void {
    this.#users.endSession(bearerIn(headers.authorization) ?? "");
  }

  /** Ends every session and unused link; returns the number of sessions. */
  signOutAll(): number {
    this.#links.endAll();
    return this.#sessions.endAll() + this.#users.endAll();
  }

  /** Who has the session of the request's cookie. */
  async sessionCaller(request: FastifyRequest): Promise<Caller | undefined> {
    const token = sessionTokenOf(request);
    if (token === undefined) {
      return undefined;
    }
    return this.#sessions.isOpen(token)
      ? OPERATOR_CALLER
      : this.#users.callerOf(token);
  }

  #startSession(request: FastifyRequest): string {
    this.endFormerSession(request);
    return this.#sessions.start();
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

  async #judgeAuthorization(
    request: FastifyRequest,
    authorization: string,
    requirement: Exclude<Requirement, "public" | "sign-in">,
  ): Promise<Access> {
    const { operatorPassword, cliToken, metricsToken } = this.#credentials();
    const value = bearerIn(authorization);
    if (value !== undefined) {
      // Tokens are too long to guess, so wrong ones cause no wait: an outdated token must not lock the operator out.
      if (isSameText(value, cliToken)) {
        return OPERATOR_ADMITTED;
      }
      const user = await this.#users.callerOf(value);
      if (user !== undefined) {
        return admit(user, requirement, false);
      }
      return requirement === "metrics" && isSameText(value, metricsToken)
        ? { kind: "allowed", caller: null, signedIn: false }
        : { kind: "unauthenticated" };
    }
    const [, basic = ""] = /^basic\s*(.*)$/i.exec(authorization) ?? [];
    const given = Buffer.from(basic, "base64").toString("utf8");
    const trial = this.#tryPassword(
      request,
      basic !== "" && isSameText(given, `operator:${operatorPassword}`),
    );
    if (trial === "right") {
      return OPERATOR_ADMITTED;
    }
    return trial === "wrong"
      ? { kind: "unauthenticated" }
      : { kind: "wait", ...trial };
  }
}

function bearerIn(authorization: string | undefined): string | undefined {
  return /^bearer\s*(.*)$/i.exec(authorization ?? "")?.[1];
}

function admit(
  caller: Caller,
  requirement: Role | "metrics",
  signedIn: boolean,
): Access {
  const needed = requirement === "metrics" ? "viewer" : requirement;
  return includesRole(caller.role, needed)
    ? { kind: "allowed", caller, signedIn }
    : { kind: "forbidden", caller, needed };
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
  return changesState(request) && isForeignPage(request);
}

/** A ping does with any method: the image of a page could report a run of a job. */
function changesState({ method, routeOptions }: FastifyRequest): boolean {
  return (
    (method !== "GET" && method !== "HEAD") ||
    routeOptions.url?.startsWith("/ping/") === true
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
