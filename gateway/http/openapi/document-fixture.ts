import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../../test/servers/admin.ts";
import type { Json } from "../../../test/servers/gateway.ts";
import {
  redisServerHere,
  startRedis,
  type TestRedis,
} from "../../../test/servers/redis.ts";
import type { OpenApiDocument, Operation } from "./document.ts";

/** A gateway whose every answer is held against its own document. */
export interface DocumentFixture {
  readonly gateway: AdminFixture;
  readonly document: OpenApiDocument;
  readonly redis: TestRedis | null;
  /** Operations that answered 200 here, such as `GET /key/info`. */
  readonly answered: ReadonlySet<string>;
  /** A request that is answered with 200, as documented. */
  ask(
    method: string,
    path: string,
    body?: unknown,
    key?: string,
  ): Promise<Json>;
  get(path: string, key?: string): Promise<Json>;
  post(path: string, body: unknown, key?: string): Promise<Json>;
  /** A request that is refused, as documented; answers the status. */
  refused(
    method: string,
    path: string,
    body?: unknown,
    key?: string,
  ): Promise<number>;
  stop(): Promise<void>;
}

export async function startDocumentFixture(): Promise<DocumentFixture> {
  const redis = redisServerHere() ? await startRedis() : null;
  const gateway = await startAdminFixture(
    "proxy_settings: { cache: true, cache_params: { type: redis } }\n",
    redis === null
      ? {}
      : { REDIS_HOST: "127.0.0.1", REDIS_PORT: String(redis.port) },
  );
  const document = (await gateway.get(
    "/openapi.json",
    "",
  )) as unknown as OpenApiDocument;
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(withoutFurtherFields(document) as object, "document");
  const answered = new Set<string>();

  function validatorOf(
    method: string,
    template: string,
    status: string,
    contentType: string,
  ): ValidateFunction {
    const escaped = template.replaceAll("~", "~0").replaceAll("/", "~1");
    const pointer = `document#/paths/${encodeURIComponent(escaped)}/${method.toLowerCase()}/responses/${status}/content/${contentType.replaceAll("/", "~1")}/schema`;
    const found = ajv.getSchema(pointer);
    if (found === undefined) {
      throw new Error(`no schema at ${pointer}`);
    }
    return found;
  }

  async function tried(
    method: string,
    path: string,
    body?: unknown,
    key?: string,
  ) {
    const { status, headers, json, text } = await gateway.request(
      method,
      path,
      body,
      key,
    );
    const [contentType = ""] = (headers.get("content-type") ?? "").split(";");
    const [template] = operationOf(document, method, path);
    const validate = validatorOf(
      method,
      template,
      status === 200 ? "200" : "default",
      contentType,
    );
    const answer: unknown =
      contentType === "application/json" ? JSON.parse(text) : text;
    if (!validate(answer)) {
      throw new Error(
        `${method} ${path} answered ${text.slice(0, 2_000)}, which is not as documented: ${ajv.errorsText(validate.errors)}`,
      );
    }
    if (status === 500) {
      throw new Error(`${method} ${path} failed: ${text.slice(0, 2_000)}`);
    }
    if (status === 200) {
      answered.add(`${method} ${template}`);
    }
    return { status, json, text };
  }

  async function ask(...asked: Parameters<typeof tried>): Promise<Json> {
    const { status, json, text } = await tried(...asked);
    if (status !== 200) {
      throw new Error(`${asked[0]} ${asked[1]} answered ${status}: ${text}`);
    }
    return json;
  }

  return {
    gateway,
    document,
    redis,
    answered,
    ask,
    get: (path, key) => ask("GET", path, undefined, key),
    post: (path, body, key) => ask("POST", path, body, key),
    async refused(...asked) {
      const { status, text } = await tried(...asked);
      if (status < 400) {
        throw new Error(`${asked[0]} ${asked[1]} answered ${status}: ${text}`);
      }
      return status;
    },
    async stop() {
      await gateway.stop();
      await redis?.remove();
    },
  };
}

/** The document lets answers have further fields; here each must be documented. */
function withoutFurtherFields(part: unknown): unknown {
  if (Array.isArray(part)) {
    return part.map(withoutFurtherFields);
  }
  if (typeof part !== "object" || part === null) {
    return part;
  }
  const walked = Object.fromEntries(
    Object.entries(part).map(([name, inner]) => [
      name,
      withoutFurtherFields(inner),
    ]),
  );
  const isClosed =
    walked["type"] === "object" &&
    walked["properties"] !== undefined &&
    walked["additionalProperties"] === undefined;
  return isClosed ? { ...walked, additionalProperties: false } : walked;
}

function operationOf(
  document: OpenApiDocument,
  method: string,
  path: string,
): readonly [string, Operation] {
  const [plain = ""] = path.split("?");
  for (const [template, operations] of Object.entries(document.paths)) {
    const matches = new RegExp(
      `^${template.replace(/\{\w+\}/g, "[^/]+")}$`,
    ).test(plain);
    const operation = operations[method.toLowerCase()];
    if (matches && operation !== undefined) {
      return [template, operation];
    }
  }
  throw new Error(`${method} ${path} is not in the document`);
}
