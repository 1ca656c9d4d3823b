import type { z } from "zod";
import { isRecord } from "../../core/json.ts";
import { invalidField } from "../calls/validate.ts";
import { CallError } from "../http/errors.ts";
import { rejectUnknownFields } from "./unknown-fields.ts";

/** Validates what an admin request sent; throws 400 that names the first field that is wrong or unknown. */
export function checkInput<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): z.output<Schema> {
  if (!isRecord(value)) {
    throw new CallError("invalid_request", "The body must be a JSON object.");
  }
  const result = schema.safeParse(value);
  if (!result.success) {
    throw invalidField(result.error);
  }
  rejectUnknownFields(schema, value);
  return result.data;
}
