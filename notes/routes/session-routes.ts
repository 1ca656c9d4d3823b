import type { IncomingMessage, ServerResponse } from "node:http";
import type { Authentication, Credentials } from "../auth/authenticate.ts";
import { sendJson, withAddress } from "../http/exchange.ts";
import { receiveBody } from "../http/request-body.ts";
import type { Target } from "../http/target.ts";
import { Refusal } from "../refusal.ts";
import { bodyBytes, bodyObject } from "../store/query.ts";
import type { ServerContext } from "./context.ts";

const MAX_BYTES = 10_000;

/** A request that starts or ends a session; it needs no other credentials. */
interface SessionExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly target: Target;
  readonly authentication: Authentication;
}

/** Answers `POST /_session` with a session cookie. */
export async function startSession(
  context: ServerContext,
  { request, response, target, authentication }: SessionExchange,
): Promise<void> {
  const credentials = await readCredentials(context, request);
  const { next } = target.query;
  if (next !== undefined && !/^\/(?![/\\])/.test(next)) {
    throw new Refusal("bad_request", "`next` must be a path of this server.");
  }
  const login = await authentication
    .logIn(request, credentials)
    .catch((failure: unknown) => {
      // No challenge of basic authentication: a browser would prompt for a password.
      throw failure instanceof Refusal && failure.code === "unauthorized"
        ? new Refusal("unauthorized", failure.message, {
            "set-cookie": authentication.clearedCookie(),
          })
        : failure;
    });
  const { name, roles } = login.user;
  sendJson(
    response,
    next === undefined ? 200 : 302,
    { ok: true, name, roles },
    {
      "set-cookie": login.setCookie ?? "",
      ...(next === undefined ? {} : withAddress(request, { location: next })),
    },
  );
}

/** Answers `DELETE /_session`: makes the client delete its cookie. */
export function endSession({
  response,
  authentication,
}: SessionExchange): void {
  sendJson(
    response,
    200,
    { ok: true },
    { "set-cookie": authentication.clearedCookie() },
  );
}

async function readCredentials(
  context: ServerContext,
  request: IncomingMessage,
): Promise<Credentials> {
  const type = request.headers["content-type"] ?? "";
  const isJson = /^application\/json\b/i.test(type);
  if (!isJson && !/^application\/x-www-form-urlencoded\b/i.test(type)) {
    throw new Refusal(
      "bad_content_type",
      "Content-Type must be 'application/x-www-form-urlencoded' or 'application/json'",
    );
  }
  const received = await receiveBody(
    request,
    context.spoolDirectory,
    MAX_BYTES,
  );
  try {
    const members = isJson
      ? bodyObject(received.body)
      : Object.fromEntries(
          new URLSearchParams(bodyBytes(received.body).toString()),
        );
    const { name = members.username, password } = members;
    if (typeof name !== "string") {
      throw new Refusal("bad_request", "request body must contain a username");
    }
    if (typeof password !== "string") {
      throw new Refusal("bad_request", "request body must contain a password");
    }
    return { name, password };
  } finally {
    await received.discard();
  }
}
