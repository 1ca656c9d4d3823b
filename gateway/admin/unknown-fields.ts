import { z } from "zod";
import { isRecord } from "../../core/json.ts";
import { nearest } from "../../core/nearest.ts";
import { CallError, invalidParam } from "../http/errors.ts";
import { insteadOf, isLitellmField } from "./litellm-fields.ts";

/**
 * Throws 400 for a field that a route does not have: a misspelt `max_budget` must not leave a key without a budget.
 * Unused fields of LiteLLM's pass. `value` has passed the schema.
 */
export function rejectUnknownFields(
  schema: z.ZodType,
  value: unknown,
  path = "",
): void {
  const fitting = fit(schema, value);
  for (const [field, inner, innerSchema] of fieldsOf(fitting, value)) {
    const at =
      typeof field === "number" ? `${path}[${field}]` : join(path, field);
    if (innerSchema !== null) {
      rejectUnknownFields(innerSchema, inner, at);
    } else if (typeof field === "string") {
      refuse(fitting, field, inner, at);
    }
  }
}

function join(path: string, field: string): string {
  return path === "" ? field : `${path}.${field}`;
}

function refuse(
  schema: z.ZodType,
  field: string,
  value: unknown,
  at: string,
): void {
  const instead = insteadOf(field, value);
  if (instead !== null) {
    throw invalidParam(at, `is not supported: ${instead}. Leave it out here.`);
  }
  if (isLitellmField(field)) {
    return;
  }
  const known = Object.keys((schema as z.ZodObject).shape);
  const near = nearest(field, known);
  throw new CallError(
    "invalid_request",
    near === undefined
      ? `Unknown field \`${at}\`. Fields of this route: ${known.length === 0 ? "none" : known.sort().join(", ")}.`
      : `Unknown field \`${at}\` (did you mean \`${near}\`?).`,
    { param: at },
  );
}

type Field = readonly [string | number, unknown, z.ZodType | null];

/** The fields of a value with their schemas; null for one that the schema does not know. */
function fieldsOf(inner: z.ZodType, value: unknown): readonly Field[] {
  if (inner instanceof z.ZodArray && Array.isArray(value)) {
    return value.map((item, at) => [at, item, inner.element as z.ZodType]);
  }
  if (!isRecord(value)) {
    return [];
  }
  const entries = Object.entries(value);
  if (inner instanceof z.ZodRecord) {
    return entries.map(([name, item]) => [
      name,
      item,
      inner.valueType as z.ZodType,
    ]);
  }
  if (!(inner instanceof z.ZodObject)) {
    return [];
  }
  // A loose object accepts any field.
  const loose = inner.def.catchall !== undefined;
  return entries.flatMap(([name, item]): readonly Field[] => {
    const field = Object.hasOwn(inner.shape, name)
      ? (inner.shape[name] as z.ZodType)
      : null;
    return field === null && loose ? [] : [[name, item, field]];
  });
}

/** The schema that a value passed: of a union the first option that accepts it. */
function fit(schema: z.ZodType, value: unknown): z.ZodType {
  const inner = bare(schema);
  if (!(inner instanceof z.ZodUnion)) {
    return inner;
  }
  const options = inner.options as readonly z.ZodType[];
  const fitting = options.find((option) => option.safeParse(value).success);
  return fitting === undefined ? inner : fit(fitting, value);
}

/** The schema without optionality, defaults and transformations. */
function bare(schema: z.ZodType): z.ZodType {
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodDefault
  ) {
    return bare(schema.def.innerType as z.ZodType);
  }
  if (schema instanceof z.ZodPipe) {
    return bare(schema.def.in as z.ZodType);
  }
  return schema;
}
