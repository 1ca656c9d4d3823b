import type { z } from "zod";
import { invalidField } from "../calls/validate.ts";
import { CallError } from "../http/errors.ts";
import { refuseUnknownFields } from "./unknown-fields.ts";

/**
 * What an admin request sent, in the expected shape; throws one sentence that names the first field that is wrong, or
 * that the route does not know.
 */
export function checkInput<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): z.output<Schema> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new CallError("invalid_request", "The body must be a JSON object.");
  }
  const result = schema.safeParse(value);
  if (!result.success) {
    throw invalidField(result.error);
  }
  refuseUnknownFields(schema, value);
  return result.data;
}
