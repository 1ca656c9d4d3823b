import { z } from "zod";
import { LITELLM_FIELDS } from "../../admin/litellm-fields.ts";
import { contentsErrorOf } from "../../dialects/contents-error.ts";
import { messagesErrorOf } from "../../dialects/messages-error.ts";
import { OPEN_ROUTES, ROUTES } from "../route-table.ts";
import type { OpenRoute, Route } from "../route.ts";
import { jsonSchemas, type Schema } from "./json-schemas.ts";

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
    Record<string, { readonly description: string; readonly content?: Content }>
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

const errorAnswer = z
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

const googleError = z
  .object({
    error: z.object({
      code: z.int(),
      message: z.string(),
      status: z.string(),
      details: z.array(z.looseObject({})).optional(),
    }),
  })
  .meta({ id: "GoogleError" });

const ERRORS = { errorAnswer, anthropicError, googleError };

/** The errors of routes that do not have the shape of OpenAI's. */
const OTHER_ERRORS: ReadonlyMap<Route["errorBody"], keyof typeof ERRORS> =
  new Map([
    [messagesErrorOf, "anthropicError"],
    [contentsErrorOf, "googleError"],
  ]);

/** The document of all routes: each under its first path, open routes under each of their paths. */
export function openApiDocument(version: string): OpenApiDocument {
  const inputs = jsonSchemas(
    Object.fromEntries(ROUTES.map(({ name, input }) => [name, input])),
    "input",
  );
  const { byName: answers, components } = jsonSchemas(
    {
      ...ERRORS,
      ...Object.fromEntries(ROUTES.map(({ name, answer }) => [name, answer])),
      ...Object.fromEntries(
        OPEN_ROUTES.map(({ paths, answer }) => [paths[0], answer]),
      ),
    },
    "output",
  );
  const operations = [
    ...OPEN_ROUTES.flatMap((route) => openOperations(route, answers)),
    ...ROUTES.map((route) =>
      operationOf(route, inputs.byName[route.name] ?? {}, answers),
    ),
  ];
  const tags = new Set(operations.flatMap(({ operation }) => operation.tags));
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
    tags: [...tags].map((name) => ({ name })),
    paths: byPath(operations),
    components: {
      securitySchemes: {
        key: {
          type: "http",
          scheme: "bearer",
          description: "A virtual key or the master key.",
        },
      },
      schemas: Object.fromEntries(
        Object.entries(components).sort(([one], [other]) =>
          one.localeCompare(other),
        ),
      ),
    },
  };
}

type Schemas = Readonly<Record<string, Schema>>;

interface Placed {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

function byPath(operations: readonly Placed[]): OpenApiDocument["paths"] {
  const groups = Map.groupBy(operations, ({ path }) => path);
  return Object.fromEntries(
    [...groups].map(([path, all]) => [
      path,
      Object.fromEntries(
        all.map(({ method, operation }) => [method.toLowerCase(), operation]),
      ),
    ]),
  );
}

function openOperations(
  { paths, summary }: OpenRoute,
  answers: Schemas,
): readonly Placed[] {
  return paths.map((path) => ({
    method: "GET",
    path,
    operation: {
      ...headOf("GET", path, summary),
      security: [],
      responses: responsesOf(
        { "application/json": answers[paths[0] ?? ""] ?? {} },
        answers["errorAnswer"] ?? {},
      ),
    },
  }));
}

function operationOf(route: Route, input: Schema, answers: Schemas): Placed {
  const { name, method, paths, summary, streams, contentType } = route;
  const path = templateOf(paths[0] ?? "");
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  const properties = (input["properties"] ?? {}) as Schemas;
  const required = (input["required"] ?? []) as readonly string[];
  const parameter = (name: string, place: Parameter["in"]): Parameter => ({
    name,
    in: place,
    required: place === "path" || required.includes(name),
    schema: properties[name] ?? { type: "string" },
  });
  const own = Object.keys(properties).filter((name) => !inPath.includes(name));
  const inQuery = method === "GET" ? own : [];
  const parameters = [
    ...inPath.map((name) => parameter(name, "path")),
    ...inQuery.map((name) => parameter(name, "query")),
  ];
  const operation: Operation = {
    ...headOf(method, path, summary),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(method === "GET" || own.length === 0
      ? {}
      : { requestBody: bodyOf(route, input, own) }),
    responses: responsesOf(
      {
        [contentType]: answers[name] ?? {},
        ...(streams ? { "text/event-stream": { type: "string" } } : {}),
      },
      answers[OTHER_ERRORS.get(route.errorBody) ?? "errorAnswer"] ?? {},
      route.status,
    ),
  };
  return { method, path, operation };
}

function headOf(method: string, path: string, summary: string) {
  return {
    operationId: `${method.toLowerCase()}${path.replace(/[{}]/g, "").replace(/[^A-Za-z0-9]+/g, "_")}`,
    summary,
    tags: [groupOf(path)],
  };
}

/** Groups the routes: calls of clients, models, then each kind of object. */
function groupOf(path: string): string {
  const [first = "", second = ""] = path.slice(1).split("/");
  if (first === "v1beta") {
    return "calls";
  }
  if (first === "v1") {
    return ["models", "access_group"].includes(second) ? second : "calls";
  }
  return first === "v2" ? second : first;
}

/** The body of a route: the fields of its input that are not in the path. */
function bodyOf(
  route: Route,
  { required: all = [], properties: given, ...input }: Schema,
  own: readonly string[],
): Operation["requestBody"] {
  const properties = Object.fromEntries(
    own.map((name) => [name, (given as Schemas)[name]]),
  );
  const required = (all as readonly string[]).filter((name) =>
    own.includes(name),
  );
  const schema = {
    ...input,
    properties: { ...litellmProperties(route, own), ...properties },
    ...(required.length === 0 ? {} : { required }),
  };
  return {
    required: required.length > 0,
    content: {
      [route.takesFiles ? "multipart/form-data" : "application/json"]: {
        schema,
      },
    },
  };
}

const TAKES_LITELLM_FIELDS =
  /^POST \/(key|user|team|customer|budget|tag)\/(service-account\/generate|generate|new|update|regenerate)$/;

/** Fields that clients of LiteLLM send, so that a generated client can send them. */
function litellmProperties(
  { name }: Route,
  own: readonly string[],
): Readonly<Record<string, Schema>> {
  if (!TAKES_LITELLM_FIELDS.test(name)) {
    return {};
  }
  return Object.fromEntries(
    LITELLM_FIELDS.filter(({ field }) => !own.includes(field)).map(
      ({ field, instead }) => [
        field,
        {
          deprecated: true,
          description:
            instead === null
              ? "Field of LiteLLM: accepted and not used."
              : `Field of LiteLLM: accepted only while empty: ${instead}.`,
        },
      ],
    ),
  );
}

function responsesOf(
  answers: Schemas,
  error: Schema,
  status: number = 200,
): Operation["responses"] {
  const content = Object.fromEntries(
    Object.entries(answers).map(([type, schema]) => [type, { schema }]),
  );
  return {
    [status]: {
      description: "Success.",
      ...(status === 101 || status === 204 ? {} : { content }),
    },
    default: {
      description: "Error: the message says what to do next.",
      content: { "application/json": { schema: error } },
    },
  };
}

/** `/key/:key/regenerate` as OpenAPI writes it. */
export function templateOf(path: string): string {
  return path.replace(/:(\w+)/g, "{$1}").replace("/*", "/{id}");
}
