import type { Schema } from "../http/openapi/json-schemas.ts";

/** Values that say more than their type, by the name of the field. */
const SAMPLES: Readonly<Record<string, unknown>> = {
  messages: [{ role: "user", content: "Hello" }],
  contents: [{ role: "user", parts: [{ text: "Hello" }] }],
  input: "Hello",
  prompt: "Hello",
  text: "Hello",
  query: "red fruit",
  documents: ["apple", "sky"],
  key: "sk-…",
  max_tokens: 100,
  team_member_permissions: ["/key/generate"],
};

/** What a request needs at least, as an example: its required fields, and the model, if it takes one. */
export function exampleBody(schema: Schema, model: string): unknown {
  const { properties = {}, required = [] } = schema as {
    readonly properties?: Readonly<Record<string, Schema>>;
    readonly required?: readonly string[];
  };
  const names = Object.keys(properties).filter((name) =>
    required.includes(name),
  );
  return Object.fromEntries(
    names.map((name) => [name, valueOf(name, properties[name] ?? {}, model)]),
  );
}

function valueOf(name: string, schema: Schema, model: string): unknown {
  if (name === "model") {
    return model;
  }
  const isPlain = ["string", "array", "integer", undefined].includes(
    schema["type"] as string | undefined,
  );
  if (isPlain && name in SAMPLES) {
    return SAMPLES[name];
  }
  const options = (schema["anyOf"] ?? schema["oneOf"]) as
    readonly Schema[] | undefined;
  if (options?.[0] !== undefined) {
    return valueOf(name, options[0], model);
  }
  const [choice] = (schema["enum"] ?? []) as readonly unknown[];
  if (choice !== undefined) {
    return choice;
  }
  switch (schema["type"]) {
    case "array":
      return [
        valueOf(name.replace(/s$/, ""), schema["items"] as Schema, model),
      ];
    case "object":
      return exampleBody(schema, model);
    case "integer":
    case "number":
      return schema["minimum"] ?? 1;
    case "boolean":
      return true;
    default:
      return "…";
  }
}
