import { isRecord, type JsonRecord } from "../../core/json.ts";

/** A field by its name in JSON, or in the schema, as Protocol Buffers permit: `inlineData`, `inline_data`. */
export function fieldOf(record: JsonRecord, name: string): unknown {
  return (
    record[name] ??
    record[name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)]
  );
}

/** Whole numbers, which JSON may have as text. */
const COUNTS = new Set([
  "minItems",
  "maxItems",
  "minLength",
  "maxLength",
  "minProperties",
  "maxProperties",
]);
/** What JSON Schema does not have. */
const GEMINI_ONLY = new Set(["nullable", "propertyOrdering", "example"]);

/** Gemini's `Schema`, a part of OpenAPI's with types in upper case, as JSON Schema. https://ai.google.dev/api/caching#Schema */
export function jsonSchemaOf(schema: unknown): unknown {
  if (Array.isArray(schema)) {
    return schema.map(jsonSchemaOf);
  }
  if (!isRecord(schema)) {
    return schema;
  }
  const fields = Object.entries(schema)
    .filter(([name]) => !GEMINI_ONLY.has(name))
    .map(([name, value]) => [name, keywordOf(name, value, schema)] as const);
  return Object.fromEntries(fields);
}

function keywordOf(name: string, value: unknown, schema: JsonRecord): unknown {
  if (name === "type" && typeof value === "string") {
    const type = value.toLowerCase();
    return schema["nullable"] === true ? [type, "null"] : type;
  }
  if (name === "properties" && isRecord(value)) {
    const properties = Object.entries(value).map(
      ([property, of]) => [property, jsonSchemaOf(of)] as const,
    );
    return Object.fromEntries(properties);
  }
  if (COUNTS.has(name)) {
    return Number(value);
  }
  return name === "items" || name === "anyOf" ? jsonSchemaOf(value) : value;
}
