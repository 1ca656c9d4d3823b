import type { Schema } from "../http/openapi/json-schemas.ts";
import { html, type Html } from "../../core/html.ts";

/** A schema in words, such as `whole number from 0 or null`. Named schemas are links. */
export function typeOf(schema: Schema): Html {
  const reference = schema["$ref"];
  if (typeof reference === "string") {
    return linkTo(reference);
  }
  const options = (schema["anyOf"] ?? schema["oneOf"]) as
    readonly Schema[] | undefined;
  if (options !== undefined) {
    return joined(options.map(typeOf));
  }
  if (schema["const"] !== undefined) {
    return html`${JSON.stringify(schema["const"])}`;
  }
  const choices = schema["enum"] as readonly unknown[] | undefined;
  if (choices !== undefined) {
    return html`${choices.join(", ")}`;
  }
  const types = [(schema["type"] ?? "any") as string | string[]].flat();
  return joined(types.map((type) => single(type, schema)));
}

function single(type: string, schema: Schema): Html {
  switch (type) {
    case "array": {
      const items = schema["items"] as Schema | undefined;
      return items === undefined ? html`list` : html`list of ${typeOf(items)}`;
    }
    case "object": {
      const fields = Object.keys((schema["properties"] ?? {}) as Schema);
      const further = schema["additionalProperties"] as Schema | undefined;
      if (fields.length > 0) {
        return html`{ ${fields.join(", ")} }`;
      }
      return further === undefined || Object.keys(further).length === 0
        ? html`object`
        : html`object of ${typeOf(further)}`;
    }
    case "integer":
      return html`whole number${bounds(schema)}`;
    case "number":
      return html`number${bounds(schema)}`;
    case "string":
      return html`${STRINGS[String(schema["format"])] ?? "text"}`;
    case "boolean":
      return html`true or false`;
    default:
      return html`${type}`;
  }
}

const STRINGS: Readonly<Record<string, string>> = {
  "date-time": "time",
  date: "day",
  email: "e-mail address",
  binary: "file",
};

function bounds({ minimum, maximum }: Schema): string {
  const most = maximum === undefined ? "" : ` to ${String(maximum)}`;
  return minimum === undefined ? "" : ` from ${String(minimum)}${most}`;
}

function joined(parts: readonly Html[]): Html {
  const seen = new Map(parts.map((part) => [part.html, part]));
  return { html: [...seen.keys()].join(" or ") };
}

function linkTo(reference: string): Html {
  const name = reference.slice(reference.lastIndexOf("/") + 1);
  return html`<a href="#shape-${name}">${name}</a>`;
}

/** The fields of an object with their types; of a body also which are required. */
export function fieldList(schema: Schema, of: "body" | "answer"): Html {
  const properties = Object.entries(
    (schema["properties"] ?? {}) as Readonly<Record<string, Schema>>,
  ).filter(([, field]) => field["deprecated"] !== true);
  const required = new Set((schema["required"] ?? []) as readonly string[]);
  return html`<dl class="fields">
    ${properties.map(([name, field]) => fieldOf(name, field, of === "body" && required.has(name)))}
  </dl>`;
}

export function fieldOf(name: string, field: Schema, required: boolean): Html {
  return html`<dt><code>${name}</code></dt>
    <dd>${typeOf(field)}${required ? html`, <b>required</b>` : html``}</dd>`;
}
