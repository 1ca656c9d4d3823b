import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { authenticate, requireMaster } from "../access/authenticate.ts";
import { query } from "../db/pool.ts";
import { findRows, type Row } from "../db/rows.ts";
import type { Gateway } from "../gateway.ts";
import { CallError } from "../http/errors.ts";
import { readQuery } from "./body.ts";
import { name } from "./fields.ts";
import { keyRows, teamRows, userRows } from "./rows.ts";

const infoQuery = z.object({ user_id: name.optional() });

/** GET /user/info: a user with keys and teams; without `user_id` all keys and teams. */
export async function userInfo(
  gateway: Gateway,
  request: FastifyRequest,
): Promise<Row> {
  const caller = await authenticate(gateway, request.headers);
  requireMaster(caller, "read users");
  const { user_id: userId } = readQuery(infoQuery, request);
  const { pool } = gateway;
  if (userId === undefined) {
    const keys = await query<Row>(
      pool,
      "SELECT * FROM keys ORDER BY created_at DESC LIMIT 1000",
    );
    const teams = await query<Row>(
      pool,
      "SELECT * FROM teams ORDER BY created_at DESC LIMIT 1000",
    );
    return {
      user_id: null,
      user_info: null,
      keys: await keyRows(gateway, keys),
      teams: await teamRows(gateway, teams),
    };
  }
  const [user] = await findRows(pool, "users", { user_id: userId });
  if (user === undefined)
    throw new CallError(
      "unknown_object",
      `There is no user ${userId}. Make one with POST /user/new, or a key for it.`,
      {
        param: "user_id",
      },
    );
  const [info] = await userRows(gateway, [user]);
  const keys = await findRows(
    pool,
    "keys",
    { user_id: userId },
    "ORDER BY created_at DESC",
  );
  const teams = await query<Row>(
    pool,
    "SELECT t.* FROM teams t JOIN team_members m USING (team_id) WHERE m.user_id = $1 ORDER BY t.created_at DESC",
    [userId],
  );
  return {
    user_id: userId,
    user_info: info,
    keys: await keyRows(gateway, keys),
    teams: await teamRows(gateway, teams),
  };
}
