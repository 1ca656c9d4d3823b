import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { RouteName } from "../access/policy.ts";
import type { Gateway } from "../gateway.ts";
import type { CallError } from "./errors.ts";

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

type Handler = (
  gateway: Gateway,
  request: FastifyRequest,
  reply: FastifyReply,
) => unknown;

/** What a route takes and answers; `/openapi.json` and `/docs` are generated from it. */
export interface RouteSchema<Input extends z.ZodType = z.ZodType> {
  readonly summary: string;
  /** Body, or query of a GET, with the parameters of the path. */
  readonly input: Input;
  readonly answer: z.ZodType;
  /** Of the answer; JSON by default. */
  readonly contentType?: string;
  /** Of success; 200 by default. 101 and 204 have no answer. */
  readonly status?: 101 | 201 | 204;
}

/** A route that needs a key: its name in the policy, its addresses, its schema and its handler. */
export interface Route extends RouteSchema {
  readonly name: RouteName;
  readonly method: Method;
  /** The first is the one in the name. */
  readonly paths: readonly string[];
  readonly contentType: string;
  readonly handler: Handler;
  readonly streams: boolean;
  /** Answers before the database is connected: diagnosis must not wait for the end of an outage. */
  readonly fromTheStart: boolean;
  /** Its body is a multipart form. */
  readonly takesFiles: boolean;
  /** Each of its requests counts for the limits of requests per minute. */
  readonly countsRequests: boolean;
  /** Authenticates on its own, by keys that are not virtual keys. */
  readonly ownKeys: boolean;
  /** Where errors do not have the shape of OpenAI's. */
  readonly errorBody?: (error: CallError) => unknown;
}

type Options = Partial<
  Pick<
    Route,
    | "streams"
    | "takesFiles"
    | "fromTheStart"
    | "countsRequests"
    | "ownKeys"
    | "errorBody"
  >
> & {
  /** Further paths of the same route. */
  readonly alsoAt?: readonly string[];
};

/** A route that needs no key. Each of its paths is a separate operation in `/openapi.json`. */
export interface OpenRoute {
  readonly paths: readonly string[];
  readonly summary: string;
  readonly answer: z.ZodType;
  readonly handler: (
    gateway: Gateway,
    reply: FastifyReply,
  ) => FastifyReply | Promise<FastifyReply>;
}

/** The input of a route that takes nothing. */
export const NO_INPUT = z.object({});

export function route(
  name: RouteName,
  schema: RouteSchema,
  handler: Handler,
  { alsoAt = [], ...options }: Options = {},
): Route {
  const [method, path = ""] = name.split(" ");
  return {
    name,
    method: method as Method,
    paths: [path, ...alsoAt],
    contentType: "application/json",
    streams: false,
    takesFiles: false,
    fromTheStart: false,
    countsRequests: false,
    ownKeys: false,
    ...schema,
    ...options,
    handler,
  };
}
