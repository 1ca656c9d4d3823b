import { isRecord, textOf, type JsonRecord } from "../../core/json.ts";

/** Deeper than any schema that is accepted; a limit for hostile ones. */
export const DEEPEST_SCHEMA = 64;

/** Constraints that OpenAI enforces and Anthropic rejects: https://platform.claude.com/docs/en/build-with-claude/structured-outputs */
const REJECTED = new Set([
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "pattern",
  "maxItems",
  "uniqueItems",
]);
/** Formats of texts that Anthropic enforces; it rejects others. */
const FORMATS = new Set([
  "date-time",
  "time",
  "date",
  "duration",
  "email",
  "hostname",
  "uri",
  "ipv4",
  "ipv6",
  "uuid",
]);

/** A schema of OpenAI's as structured outputs take it: objects are closed, and the description says what cannot be enforced. */
export function anthropicSchema(schema: JsonRecord, depth = 0): JsonRecord {
  if (depth > DEEPEST_SCHEMA) {
    return schema;
  }
  const kept: Record<string, unknown> = {};
  const described: string[] = [];
  for (const [name, value] of Object.entries(schema)) {
    if (isRejected(name, value)) {
      described.push(`${name}: ${JSON.stringify(value)}`);
    } else {
      kept[name] = withSchemas(name, value, depth);
    }
  }
  if (described.length > 0) {
    kept["description"] = [textOf(schema["description"]), described.join(", ")]
      .filter(Boolean)
      .join("\n\n");
  }
  return schema["type"] === "object" &&
    isRecord(schema["properties"]) &&
    schema["additionalProperties"] === undefined
    ? { ...kept, additionalProperties: false }
    : kept;
}

function isRejected(name: string, value: unknown): boolean {
  switch (name) {
    case "minItems":
      return value !== 0 && value !== 1;
    case "format":
      return !FORMATS.has(textOf(value));
    default:
      return REJECTED.has(name);
  }
}

/** The value of a keyword with the schemas in it. */
function withSchemas(name: string, value: unknown, depth: number): unknown {
  const inner = (one: unknown) =>
    isRecord(one) ? anthropicSchema(one, depth + 1) : one;
  switch (name) {
    case "items":
    case "additionalProperties":
      return inner(value);
    case "anyOf":
    case "oneOf":
    case "allOf":
      return Array.isArray(value) ? value.map(inner) : value;
    case "properties":
    case "$defs":
    case "definitions":
      return isRecord(value)
        ? Object.fromEntries(
            Object.entries(value).map(([key, one]) => [key, inner(one)]),
          )
        : value;
    default:
      return value;
  }
}
