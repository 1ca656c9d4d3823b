import { describe, expect, test } from "vitest";
import { anthropicSchema } from "./anthropic-schema.ts";

describe("a schema for Anthropic", () => {
  // Anthropic: "output_format.schema: For 'integer' type, property 'minimum' is not supported".
  test.each<[object, object]>([
    [
      { type: "integer", minimum: 0, description: "Years." },
      { type: "integer", description: "Years.\n\nminimum: 0" },
    ],
    [
      { type: "string", pattern: "^a", maxLength: 3, format: "regex" },
      {
        type: "string",
        description: 'pattern: "^a", maxLength: 3, format: "regex"',
      },
    ],
    [
      { type: "string", format: "date" },
      { type: "string", format: "date" },
    ],
    [
      { type: "array", minItems: 1, maxItems: 5, items: { multipleOf: 2 } },
      {
        type: "array",
        minItems: 1,
        items: { description: "multipleOf: 2" },
        description: "maxItems: 5",
      },
    ],
    [
      { type: "array", minItems: 2 },
      { type: "array", description: "minItems: 2" },
    ],
    [
      {
        $defs: { a: { anyOf: [{ minimum: 1 }, { const: 0 }] } },
        $ref: "#/$defs/a",
      },
      {
        $defs: { a: { anyOf: [{ description: "minimum: 1" }, { const: 0 }] } },
        $ref: "#/$defs/a",
      },
    ],
  ])("%j is sent as %j", (schema, sent) => {
    expect(anthropicSchema({ ...schema })).toEqual(sent);
  });

  test("names of properties and values are no constraints", () => {
    const schema = {
      type: "object",
      properties: {
        minimum: { type: "integer", enum: [0, 1] },
        format: { type: "object", const: { minimum: 1, format: "x" } },
      },
      additionalProperties: false,
    };
    expect(anthropicSchema(schema)).toEqual(schema);
  });
});
