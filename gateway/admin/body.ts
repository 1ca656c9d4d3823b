import type { FastifyRequest } from "fastify";
import type { z } from "zod";
import { invalidField } from "../calls/validate.ts";
import { CallError } from "../http/errors.ts";

/** The body of an admin request in the expected shape; an empty body is an empty object. */
export function readBody<Schema extends z.ZodType>(
  schema: Schema,
  request: FastifyRequest,
): z.output<Schema> {
  return check(schema, request.body ?? {}, "The body must be a JSON object.");
}

/** The query parameters of a request in the expected shape. */
export function readQuery<Schema extends z.ZodType>(
  schema: Schema,
  request: FastifyRequest,
): z.output<Schema> {
  return check(schema, request.query, "The query is not right.");
}

function check<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  otherwise: string,
): z.output<Schema> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new CallError("invalid_request", otherwise);
  const result = schema.safeParse(value);
  if (!result.success) throw invalidField(result.error);
  return result.data;
}
