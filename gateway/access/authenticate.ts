import type { IncomingHttpHeaders } from "node:http";
import type { FastifyRequest } from "fastify";
import { looksLikeToken } from "../../core/tokens/verify-token.ts";
import type { Secret } from "../config/secret.ts";
import { DatabaseUnavailable, nullIfUnavailable } from "../database/pool.ts";
import type { Gateway } from "../gateway.ts";
import { CallError, databaseUnavailable } from "../http/errors.ts";
import {
  ACTING_USER_HEADER,
  actingCaller,
  actingUserIn,
  userBlocked,
} from "./acting-user.ts";
import { MASTER_USER, type Caller, type KeyCaller } from "./callers.ts";
import { hashKey, keyName, readKey, sameHash } from "./keys.ts";

/** Who sent a request: the master key's holder, or a virtual key or a trusted issuer's token that is neither blocked nor expired. */
export async function authenticate(
  gateway: Gateway,
  headers: IncomingHttpHeaders,
): Promise<Caller> {
  const credential = readKey(headers);
  if (credential === null || credential === "") {
    throw new CallError(
      "no_key",
      "No API key was sent. Send it as `Authorization: Bearer sk-…`.",
    );
  }
  const token = hashKey(credential);
  const acting = actingUserIn(headers);
  if (isMasterKey(gateway, token)) {
    return acting === undefined
      ? masterCaller(gateway)
      : actingCaller(gateway.pool, acting);
  }
  if (acting !== undefined) {
    throw new CallError(
      "permission_denied",
      `Only the master key may act for a user: leave out the header ${ACTING_USER_HEADER}.`,
    );
  }
  if (!credential.startsWith("sk-")) {
    if (gateway.config.jwt.length > 0 && looksLikeToken(credential)) {
      const caller = await gateway.jwt.find(credential, token);
      refuseUnusable(caller, null);
      return caller;
    }
    throw new CallError(
      "malformed_key",
      "The API key is malformed: virtual keys start with `sk-`.",
    );
  }
  const caller = await findKey(gateway, token);
  if (caller === null) {
    throw new CallError(
      "unknown_key",
      `The API key ending in ${credential.slice(-4)} is unknown. Ask the gateway's administrator for a new one.`,
    );
  }
  refuseUnusable(caller, credential);
  return caller;
}

/** The caller of a request, as its route determined before the body was read. */
export function callerOf({ caller }: FastifyRequest): Caller {
  if (caller === null) {
    throw new Error("the caller of a route without a key was requested");
  }
  return caller;
}

/**
 * Whether a hash of {@link hashKey} is the master key's, or that of the one before until its time is over. Both are compared,
 * in constant time.
 */
export function isMasterKey(
  gateway: Pick<Gateway, "config">,
  token: string,
): boolean {
  const { masterKey, previousMasterKey: previous } = gateway.config.general;
  const isCurrent = sameHash(token, hashOfMasterKey(masterKey));
  const isPrevious =
    previous !== null &&
    sameHash(token, hashOfMasterKey(previous.key)) &&
    Date.now() < previous.until;
  return isCurrent || isPrevious;
}

const masterHashes = new WeakMap<Secret, string>();

/** Hashed once per configuration, since every call needs it. */
function hashOfMasterKey(masterKey: Secret): string {
  const known = masterHashes.get(masterKey);
  if (known !== undefined) {
    return known;
  }
  const hash = hashKey(masterKey.reveal());
  masterHashes.set(masterKey, hash);
  return hash;
}

async function masterCaller(gateway: Gateway): Promise<Caller> {
  const user = gateway.callers.users.peek(MASTER_USER);
  if (user !== undefined) {
    return { kind: "master", userId: MASTER_USER, user };
  }
  // The master key works without the database: its user has limits only if they were set.
  if (!gateway.database.ready()) {
    return { kind: "master", userId: MASTER_USER, user: null };
  }
  const found = await gateway.callers.users
    .find(MASTER_USER)
    .catch(nullIfUnavailable);
  return { kind: "master", userId: MASTER_USER, user: found };
}

/** Throws 503, never 401, for a key that was not seen before while the database is away. */
async function findKey(
  gateway: Gateway,
  token: string,
): Promise<KeyCaller | null> {
  const known = gateway.callers.keys.peek(token);
  if (known !== undefined) {
    return known;
  }
  if (!gateway.database.ready()) {
    throw databaseUnavailable();
  }
  try {
    return await gateway.callers.keys.find(token);
  } catch (error) {
    throw error instanceof DatabaseUnavailable ? databaseUnavailable() : error;
  }
}

/** `secret` is what was sent; null: a token. */
function refuseUnusable(caller: KeyCaller, secret: string | null): void {
  if (caller.expires !== null && caller.expires <= Date.now()) {
    throw new CallError(
      "expired_key",
      // A replaced secret opens its successor's row, and must not reveal the successor's name.
      `The API key ${secret === null ? caller.keyName : keyName(secret)} expired at ${new Date(caller.expires).toISOString()}. Ask for a new one.`,
    );
  }
  if (caller.blocked) {
    throw new CallError(
      "blocked",
      `Key is blocked: ${caller.keyName}. Ask the gateway's administrator to unblock it.`,
    );
  }
  if (caller.user?.blocked === true) {
    throw userBlocked(caller.userId);
  }
  if (caller.team?.blocked === true) {
    throw new CallError(
      "blocked",
      `Team=${caller.team.id} is blocked. Ask the gateway's administrator to unblock it.`,
    );
  }
}
