import { isRecord, listOf } from "../../core/json.ts";
import { DEEPEST_SCHEMA } from "../providers/anthropic-schema.ts";

/**
 * Whether OpenAI accepts a schema as strict: every object in it is closed and requires all of its properties. Anthropic accepts
 * optional ones as well.
 * https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas
 */
export function isStrictSchema(value: unknown, depth = 0): boolean {
  if (depth > DEEPEST_SCHEMA) {
    return false;
  }
  if (Array.isArray(value)) {
    return value.every((one) => isStrictSchema(one, depth + 1));
  }
  if (!isRecord(value)) {
    return true;
  }
  return (
    (!describesObject(value) || requiresAll(value)) &&
    Object.values(value).every((one) => isStrictSchema(one, depth + 1))
  );
}

function describesObject({ type }: Record<string, unknown>): boolean {
  return type === "object" || (Array.isArray(type) && type.includes("object"));
}

function requiresAll(schema: Record<string, unknown>): boolean {
  const { properties } = schema;
  const required = new Set(listOf(schema["required"]));
  return (
    schema["additionalProperties"] === false &&
    Object.keys(isRecord(properties) ? properties : {}).every((name) =>
      required.has(name),
    )
  );
}
