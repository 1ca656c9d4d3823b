import type { IncomingHttpHeaders } from "node:http";
import { query, type Pool } from "../database/pool.ts";
import { CallError } from "../http/errors.ts";
import type { KeyCaller, PayerLimits } from "./callers.ts";
import { limitsOf } from "./load-callers.ts";
import { ACTING_KEY_TYPE } from "./key-routes.ts";

/**
 * The console acts for the person who is signed in there: a request with the master key that names a user in this header has the
 * rights of a personal key of that user, and never makes calls.
 */
export const ACTING_USER_HEADER = "x-hearth-acting-user";

/** The user that a request names; undefined if it names none. */
export function actingUserIn(headers: IncomingHttpHeaders): string | undefined {
  const named = headers[ACTING_USER_HEADER];
  return named === undefined ? undefined : utf8Text(String(named));
}

/** The text of a header whose bytes are UTF-8, which Node reads as Latin-1; unchanged if they are not. */
export function utf8Text(header: string): string {
  const text = Buffer.from(header, "latin1").toString("utf8");
  return text.includes("\uFFFD") ? header : text;
}

interface UserRow {
  readonly user_id: string;
  readonly models: string[];
  readonly user_role: string;
  readonly blocked: boolean;
  readonly limits: PayerLimits;
}

/** A caller with the rights of a user's personal key without limits; throws 404 for an unknown user, 401 for a blocked one. */
export async function actingCaller(
  pool: Pool,
  userId: string,
): Promise<KeyCaller> {
  const [row] = await query<UserRow>(
    pool,
    `SELECT u.user_id, u.models, u.user_role, u.blocked, ${limitsOf("u", "b")} AS limits
       FROM users u LEFT JOIN budgets b ON b.budget_id = u.budget_id WHERE u.user_id = $1`,
    [userId],
  );
  if (row === undefined) {
    throw new CallError(
      "unknown_object",
      `The user ${userId} does not exist. Create it with POST /user/new.`,
      { param: "user_id" },
    );
  }
  if (row.blocked) {
    throw userBlocked(userId);
  }
  const { models, user_role: role, blocked, limits } = row;
  return {
    kind: "key",
    // No hash of a key looks like this.
    token: `user:${userId}`,
    alias: null,
    keyName: `user ${userId}`,
    models: [],
    aliases: new Map(),
    tags: [],
    guardrails: [],
    storePrompts: false,
    metadata: {},
    allowedRoutes: [],
    keyType: ACTING_KEY_TYPE,
    blocked: false,
    expires: null,
    temporaryIncrease: null,
    limits: UNLIMITED,
    modelLimits: new Map(),
    userId,
    userPays: true,
    user: { models, role, blocked, limits },
    team: null,
    organization: null,
  };
}

const UNLIMITED: PayerLimits = {
  maxBudget: null,
  budgetDuration: null,
  tokensPerMinute: null,
  requestsPerMinute: null,
  parallel: null,
};

export function userBlocked(userId: string | null): CallError {
  return new CallError(
    "blocked",
    `User=${userId} is blocked. Ask the gateway's administrator to unblock it.`,
  );
}
