import type { IncomingHttpHeaders } from "node:http";
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { actorFor, type Actor } from "../access/actor.ts";
import { callerOf } from "../access/authenticate.ts";
import type { Caller } from "../access/callers.ts";
import { ruleOf, type RouteName, type Rule } from "../access/policy.ts";
import {
  reachedTeams,
  reaches,
  refuseUnlessReached,
  type ObjectFacts,
} from "../access/reach.ts";
import { DatabaseUnavailable, type Pool } from "../database/pool.ts";
import type { Windowing } from "../database/totals.ts";
import type { Gateway } from "../gateway.ts";
import { CallError } from "../http/errors.ts";
import { route, type Route, type RouteSchema } from "../http/route.ts";
import { stringifyInTurns } from "../http/stringify-in-turns.ts";
import { checkInput } from "./body.ts";

/** What an admin route works with: the gateway and the caller. */
export interface Admin {
  readonly gateway: Gateway;
  readonly pool: Pool;
  readonly caller: Caller;
  readonly actor: Actor;
  readonly rule: Rule;
  /** The caller reaches the objects of all owners by this route. */
  readonly reachesAll: boolean;
  /** The teams whose objects the caller reaches by this route, unless it reaches all. */
  readonly teams: readonly string[];
  readonly windowing: Windowing;
  /** Ms since the epoch. */
  readonly now: number;
  reaches(object: ObjectFacts): boolean;
  /** Throws 403 for an object that is out of reach. */
  requireReach(object: ObjectFacts): void;
}

/**
 * Describes a route. Its input is the body, or the query of a GET, with the parameters of the path; `handle` gets it
 * validated, from a caller who may use the route. Which objects the caller reaches is for `handle` to check, by {@link Admin}.
 */
export function adminRoute<Input extends z.ZodObject>(
  name: RouteName,
  schema: RouteSchema<Input>,
  handle: (admin: Admin, input: z.output<Input>) => Promise<unknown>,
  alsoAt: readonly string[] = [],
): Route {
  const handler: Route["handler"] = async (gateway, request, reply) => {
    const admin = await adminFor(gateway, request, name);
    rejectLong(admin, request);
    const input = checkInput(schema.input, {
      ...(request.query as object),
      ...bodyOf(request),
      ...(request.params as object),
    });
    const answer = await inTurn(admin, request, () => handle(admin, input));
    if (!name.startsWith("GET ")) {
      await inEffect(gateway);
    }
    return schema.status === 204
      ? reply.code(204).send()
      : reply
          .code(schema.status ?? 200)
          .type("application/json; charset=utf-8")
          .send(await stringifyInTurns(answer));
  };
  return route(name, schema, handler, { alsoAt });
}

/** In characters of JSON. All gateways keep what a key and its owners have in memory, for as many keys as a user creates. */
const MAX_CHARACTERS = 262_144;

function rejectLong({ actor, rule }: Admin, { body }: FastifyRequest): void {
  if (
    rule.kind === "management" &&
    actor.role !== "proxy_admin" &&
    JSON.stringify(body ?? null).length > MAX_CHARACTERS
  ) {
    throw new CallError(
      "body_too_large",
      `The body has more than ${MAX_CHARACTERS.toLocaleString("en")} characters, which only a proxy_admin may send: shorten \`metadata\` and lists.`,
    );
  }
}

/** Admins run as many requests as they like: all others wait for their own. */
function inTurn<T>(
  { actor, gateway }: Admin,
  { raw: { socket } }: FastifyRequest,
  work: () => Promise<T>,
): Promise<T> {
  if (actor.role === "proxy_admin") {
    return work();
  }
  const user = actor.userId ?? `key:${actor.token}`;
  return gateway.turns.take(user, async () => {
    if (socket.destroyed) {
      throw new CallError("overloaded", "The client left while it waited.");
    }
    return work();
  });
}

/**
 * Resolves when what was committed is in effect on this instance: the next call already meets a deleted key or a lower budget.
 * Other instances follow within a second.
 */
async function inEffect({
  callers,
  database,
}: Pick<Gateway, "callers" | "database">): Promise<void> {
  try {
    await database.caughtUp();
  } catch (error) {
    if (!(error instanceof DatabaseUnavailable)) {
      throw error;
    }
    callers.clear();
  }
}

/** The caller of a request; throws 403 unless it may use the route. */
export function adminFor(
  gateway: Gateway,
  request: FastifyRequest,
  name: RouteName,
): Promise<Admin> {
  return adminOf(gateway, callerOf(request), request.headers, name);
}

/** The same for a caller that is already authenticated. */
export async function adminOf(
  gateway: Gateway,
  caller: Caller,
  headers: IncomingHttpHeaders,
  name: RouteName,
): Promise<Admin> {
  const rule = ruleOf(name);
  const path = name.slice(name.indexOf(" ") + 1);
  const { pool } = gateway;
  const actor = await actorFor(pool, caller, headers, name, rule);
  const { timezone, budgetDuration } = gateway.config.general;
  return {
    gateway,
    pool,
    caller,
    actor,
    rule,
    reachesAll: rule.reach[actor.role] === "all",
    teams: reachedTeams(actor, rule, path),
    windowing: { timeZone: timezone, proxyDuration: budgetDuration },
    now: Date.now(),
    reaches: (object) => reaches(actor, rule, object, path),
    requireReach: (object) => refuseUnlessReached(actor, rule, object, path),
  };
}

/** Some clients send a body with DELETE, others with GET: a body is read with any method. */
function bodyOf(request: FastifyRequest): object {
  const { body } = request;
  if (body === undefined || body === null) {
    return {};
  }
  return checkInput(z.looseObject({}), body);
}
