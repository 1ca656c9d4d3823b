import { z } from "zod";
import type { RouteName } from "../../access/policy.ts";
import { LITELLM_FIELDS } from "../../admin/litellm-fields.ts";
import type { Route } from "../route-table.ts";
import {
  KEY_ANSWERS,
  OTHER_ANSWERS,
  TEAM_ANSWERS,
  USER_ANSWERS,
} from "./admin-answers.ts";
import { CALL_ANSWERS, OPEN_ANSWERS } from "./call-answers.ts";
import type { Described } from "./described.ts";
import { MODEL_ANSWERS } from "./model-answers.ts";
import { SPEND_ANSWERS } from "./spend-answers.ts";

const ANSWERS: Readonly<Record<RouteName, Described>> = {
  ...CALL_ANSWERS,
  ...KEY_ANSWERS,
  ...USER_ANSWERS,
  ...TEAM_ANSWERS,
  ...OTHER_ANSWERS,
  ...MODEL_ANSWERS,
  ...SPEND_ANSWERS,
};

export interface Schema {
  readonly [keyword: string]: unknown;
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query";
  readonly required: boolean;
  readonly schema: Schema;
}

interface Content {
  readonly [type: string]: { readonly schema: Schema };
}

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly security?: readonly [];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: Content;
  };
  readonly responses: Readonly<
    Record<string, { readonly description: string; readonly content: Content }>
  >;
}

export interface OpenApiDocument {
  readonly openapi: "3.1.0";
  readonly info: Readonly<Record<string, string>>;
  readonly servers: readonly { readonly url: string }[];
  readonly security: readonly Readonly<Record<string, readonly []>>[];
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly securitySchemes: Schema;
    readonly schemas: Readonly<Record<string, Schema>>;
  };
}

const errorBody = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.string(),
      param: z.string().nullable(),
      code: z.string(),
    }),
  })
  .meta({ id: "Error" });

const anthropicError = z
  .object({
    type: z.literal("error"),
    error: z.object({ type: z.string(), message: z.string() }),
  })
  .meta({ id: "AnthropicError" });

/** Describes every route from the schemas that check what it takes. Each route stands under its first path. */
export function openApiDocument(
  routes: readonly Route[],
  version: string,
): OpenApiDocument {
  const components = new Map<string, Schema>();
  const paths: Record<string, Record<string, Operation>> = {};
  const add = (method: string, path: string, operation: Operation) => {
    paths[path] = { ...paths[path], [method.toLowerCase()]: operation };
  };
  for (const [name, about] of Object.entries(OPEN_ANSWERS)) {
    const [method = "", path = ""] = name.split(" ");
    add(method, path, {
      ...headOf(method, path, about.summary),
      security: [],
      responses: answers(about, errorBody, false, components),
    });
  }
  for (const route of routes) {
    const path = templateOf(route.paths[0] ?? "");
    add(route.method, path, operationOf(route, path, components));
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Hearth gateway",
      version,
      description:
        "An OpenAI-compatible gateway with virtual keys, budgets and spend. Answers may have further fields.",
    },
    servers: [{ url: "/" }],
    security: [{ key: [] }],
    tags: [
      ...new Set(
        Object.values(paths).flatMap((operations) =>
          Object.values(operations).flatMap(({ tags }) => tags),
        ),
      ),
    ].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: {
        key: {
          type: "http",
          scheme: "bearer",
          description: "A virtual key or the master key.",
        },
      },
      schemas: Object.fromEntries(
        [...components].sort(([one], [other]) => one.localeCompare(other)),
      ),
    },
  };
}

function operationOf(
  route: Route,
  path: string,
  components: Map<string, Schema>,
): Operation {
  const about = ANSWERS[route.name];
  const error = route.errorBody === undefined ? errorBody : anthropicError;
  const input = schemaOf(route.input, "input", components);
  const properties = (input["properties"] ?? {}) as Record<string, Schema>;
  const required = (input["required"] ?? []) as readonly string[];
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  const own = Object.keys(properties).filter((name) => !inPath.includes(name));
  const byQuery = route.method === "GET";
  const parameter = (name: string, place: Parameter["in"]): Parameter => ({
    name,
    in: place,
    required: place === "path" || required.includes(name),
    schema: properties[name] ?? { type: "string" },
  });
  const parameters = [
    ...inPath.map((name) => parameter(name, "path")),
    ...(byQuery ? own.map((name) => parameter(name, "query")) : []),
  ];
  return {
    ...headOf(route.method, path, about.summary),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(byQuery || own.length === 0
      ? {}
      : { requestBody: bodyOf(route, input, inPath) }),
    responses: answers(about, error, route.streams, components),
  };
}

function headOf(method: string, path: string, summary: string) {
  return {
    operationId: `${method.toLowerCase()}${path.replace(/[{}]/g, "").replace(/[^A-Za-z0-9]+/g, "_")}`,
    summary,
    tags: [groupOf(path)],
  };
}

/** Routes are read in groups: what clients call, then one for each kind of object. */
export function groupOf(path: string): string {
  const [first = "", second = ""] = path.slice(1).split("/");
  if (first === "v1") {
    return second === "models" ? "models" : "calls";
  }
  return first === "v2" ? second : first;
}

function bodyOf(route: Route, input: Schema, inPath: readonly string[]) {
  const properties = { ...(input["properties"] as Record<string, Schema>) };
  for (const name of inPath) {
    delete properties[name];
  }
  const required = ((input["required"] ?? []) as readonly string[]).filter(
    (name) => !inPath.includes(name),
  );
  const schema = {
    ...input,
    properties: { ...litellmProperties(route, properties), ...properties },
    ...(required.length === 0 ? {} : { required }),
  };
  if (required.length === 0) {
    delete (schema as { required?: unknown }).required;
  }
  return {
    required: required.length > 0,
    content: { "application/json": { schema } },
  };
}

const TAKES_LITELLM_FIELDS =
  /^POST \/(key|user|team|customer|budget|tag)\/(service-account\/generate|generate|new|update|regenerate)$/;

/** Fields that clients of LiteLLM send, so that a generated client can hold them. */
function litellmProperties(
  { name }: Route,
  own: Readonly<Record<string, Schema>>,
): Readonly<Record<string, Schema>> {
  if (!TAKES_LITELLM_FIELDS.test(name)) {
    return {};
  }
  return Object.fromEntries(
    LITELLM_FIELDS.filter(({ field }) => !Object.hasOwn(own, field)).map(
      ({ field, instead }) => [
        field,
        {
          deprecated: true,
          description:
            instead === null
              ? "LiteLLM's; taken and not used."
              : `LiteLLM's; taken only while it is empty: ${instead}.`,
        },
      ],
    ),
  );
}

function answers(
  { answer, contentType }: Described,
  error: z.ZodType,
  streams: boolean,
  components: Map<string, Schema>,
): Operation["responses"] {
  return {
    "200": {
      description: "As asked.",
      content: {
        [contentType]: { schema: schemaOf(answer, "output", components) },
        ...(streams
          ? { "text/event-stream": { schema: { type: "string" } } }
          : {}),
      },
    },
    default: {
      description: "Refused: one sentence says what to do next.",
      content: {
        "application/json": { schema: schemaOf(error, "output", components) },
      },
    },
  };
}

/** `/key/:key/regenerate` as OpenAPI writes it. */
function templateOf(path: string): string {
  return path.replace(/:(\w+)/g, "{$1}").replace("/*", "/{id}");
}

/** A schema of ours as JSON Schema; those with a name go to the components. */
function schemaOf(
  schema: z.ZodType,
  io: "input" | "output",
  components: Map<string, Schema>,
): Schema {
  const {
    $defs,
    $schema: _,
    ...own
  } = z.toJSONSchema(schema, {
    io,
    target: "draft-2020-12",
    unrepresentable: "any",
  }) as Schema & { $defs?: Record<string, Schema> };
  for (const [name, definition] of Object.entries($defs ?? {})) {
    components.set(name, tidy(definition));
  }
  const id = (own as { id?: string }).id;
  if (id === undefined || io === "input") {
    return tidy(own);
  }
  components.set(id, tidy(own));
  return { $ref: `#/components/schemas/${id}` };
}

/** Every whole number has these bounds: they say nothing of the field. */
function isBoundOfIntegers(value: unknown): boolean {
  return Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER;
}

/** References lead to the components; an answer may always have further fields. */
function tidy(value: Schema): Schema {
  const walk = (part: unknown): unknown => {
    if (Array.isArray(part)) {
      return part.map(walk);
    }
    if (typeof part !== "object" || part === null) {
      return part;
    }
    const entries = Object.entries(part).flatMap(([name, inner]) => {
      if (name === "additionalProperties" && inner === false) {
        return [];
      }
      if (name === "id" && typeof inner === "string") {
        return [];
      }
      if (isBoundOfIntegers(inner)) {
        return [];
      }
      if (name === "$ref") {
        return [
          [name, String(inner).replace("#/$defs/", "#/components/schemas/")],
        ];
      }
      return [[name, walk(inner)]];
    });
    return Object.fromEntries(entries) as unknown;
  };
  return walk(value) as Schema;
}
