import { createHash, timingSafeEqual } from "node:crypto";
import type { FastifyRequest } from "fastify";
import { countAttempts } from "./attempts.ts";
import { openSessions, tokenIn } from "./sessions.ts";

export type Access =
  | { readonly kind: "allowed" }
  | { readonly kind: "needs-password" }
  | { readonly kind: "foreign-page" }
  | { readonly kind: "wait"; readonly ms: number };

export type SignIn =
  | { readonly kind: "open"; readonly token: string }
  | { readonly kind: "wrong" }
  | { readonly kind: "wait"; readonly ms: number };

/** wait: too many wrong ones; it was not looked at. */
export type PasswordTrial =
  | { readonly kind: "right" }
  | { readonly kind: "wrong" }
  | { readonly kind: "wait"; readonly ms: number };

export type Door = {
  /**
   * Who may ask: anybody on this machine itself (loopback address, loopback Host, nothing forwarded), else the operator by
   * Basic authentication or the sign-in form's cookie. A web page of another origin may change nothing, wherever its reader
   * sits.
   */
  readonly judge: (request: FastifyRequest) => Access;
  /** The same for what anybody may ask. */
  readonly judgeOpen: (request: FastifyRequest) => Access;
  /** Whether somebody knows the operator's password; wrong ones cost a growing wait. */
  readonly tryPassword: (
    request: FastifyRequest,
    password: string,
  ) => PasswordTrial;
  readonly signIn: (request: FastifyRequest, password: string) => SignIn;
  readonly signOut: (request: FastifyRequest) => void;
  /** Whether this request came in by a cookie, so that there is something to sign out of. */
  readonly isSignedIn: (request: FastifyRequest) => boolean;
};

const forwarded = [
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-real-ip",
  "via",
];

/** Without a password only this machine itself gets in. `now` gives milliseconds since 1970. */
export function openDoor(
  operatorPassword: string | undefined,
  now: () => number,
): Door {
  const sessions = openSessions(now);
  const attempts = countAttempts(now);

  function isSignedIn(request: FastifyRequest): boolean {
    const token = tokenIn(request.headers.cookie);
    return token !== undefined && sessions.isOpen(token);
  }

  /** Counts the try. */
  function knows(
    request: FastifyRequest,
    isRight: (password: string) => boolean,
  ): Access {
    const address = request.socket.remoteAddress ?? "";
    const ms = attempts.waitOf(address);
    if (ms > 0) return { kind: "wait", ms };
    if (operatorPassword !== undefined && isRight(operatorPassword)) {
      attempts.succeeded(address);
      return { kind: "allowed" };
    }
    attempts.failed(address);
    return { kind: "needs-password" };
  }

  function tryPassword(request: FastifyRequest, given: string): PasswordTrial {
    const access = knows(request, (password) => sameText(given, password));
    switch (access.kind) {
      case "allowed":
        return { kind: "right" };
      case "wait":
        return access;
      case "needs-password":
      case "foreign-page":
        return { kind: "wrong" };
    }
  }

  return {
    tryPassword,
    judge: (request) => {
      if (isForeignChange(request)) return { kind: "foreign-page" };
      if (isLocal(request) || isSignedIn(request)) return { kind: "allowed" };
      const { authorization } = request.headers;
      if (authorization === undefined) return { kind: "needs-password" };
      return knows(request, (password) =>
        sameText(basicOf(authorization), `operator:${password}`),
      );
    },
    judgeOpen: (request) => ({
      kind: isForeignChange(request) ? "foreign-page" : "allowed",
    }),
    signIn: (request, given) => {
      const trial = tryPassword(request, given);
      return trial.kind === "right"
        ? { kind: "open", token: sessions.begin() }
        : trial;
    },
    signOut: (request) => {
      const token = tokenIn(request.headers.cookie);
      if (token !== undefined) sessions.end(token);
    },
    isSignedIn,
  };
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
  if (site !== undefined && site !== "same-origin" && site !== "none")
    return true;
  const { origin } = request.headers;
  if (origin === undefined) return false;
  return !URL.canParse(origin) || new URL(origin).host !== request.headers.host;
}

/** "user:password" of a Basic header. */
function basicOf(authorization: string): string {
  const encoded = /^Basic\s+(\S+)$/i.exec(authorization)?.[1] ?? "";
  return Buffer.from(encoded, "base64").toString("utf8");
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
