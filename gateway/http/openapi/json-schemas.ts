import { z } from "zod";

/** A JSON Schema (draft 2020-12), as OpenAPI 3.1 takes it. */
export interface Schema {
  readonly [keyword: string]: unknown;
}

interface JsonSchemas {
  readonly byName: Readonly<Record<string, Schema>>;
  /** Schemas with an `id`, which the others refer to. */
  readonly components: Readonly<Record<string, Schema>>;
}

/** Zod schemas as JSON Schema. */
export function jsonSchemas(
  schemas: Readonly<Record<string, z.ZodType>>,
  io: "input" | "output",
): JsonSchemas {
  const converted = z.toJSONSchema(z.object(schemas), {
    io,
    unrepresentable: "any",
  });
  const { properties, $defs = {} } = JSON.parse(
    JSON.stringify(converted),
    tidy,
  ) as {
    readonly properties: Readonly<Record<string, Schema>>;
    readonly $defs?: Readonly<Record<string, Schema>>;
  };
  return { byName: properties, components: $defs };
}

/** A reviver that directs references to the components and drops keywords without meaning. */
function tidy(keyword: string, value: unknown): unknown {
  if (keyword === "$ref") {
    return String(value).replace("#/$defs/", "#/components/schemas/");
  }
  const isDropped =
    // Answers may always have further fields.
    (keyword === "additionalProperties" && value === false) ||
    (keyword === "id" && typeof value === "string") ||
    // The bounds of every whole number.
    Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER;
  return isDropped ? undefined : value;
}
