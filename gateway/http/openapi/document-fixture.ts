import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import {
  startAdminFixture,
  type AdminFixture,
} from "../../../test/servers/admin.ts";
import type { Json } from "../../../test/servers/gateway.ts";
import {
  hasRedisServer,
  startRedis,
  type TestRedis,
} from "../../../test/servers/redis.ts";
import type { OpenApiDocument, Operation } from "./document.ts";

type Question = readonly [
  method: string,
  path: string,
  body?: unknown,
  key?: string,
];

/** A gateway that validates each of its answers against its own document. */
export class DocumentFixture {
  readonly gateway: AdminFixture;
  readonly document: OpenApiDocument;
  readonly redis: TestRedis | null;
  /** Operations that answered with success here, such as `GET /key/info`. */
  readonly answered = new Set<string>();
  readonly #ajv = new Ajv2020({ strict: false, validateFormats: false });

  constructor(
    gateway: AdminFixture,
    document: OpenApiDocument,
    redis: TestRedis | null,
  ) {
    this.gateway = gateway;
    this.document = document;
    this.redis = redis;
    this.#ajv.addSchema(withoutFurtherFields(document) as object, "document");
  }

  /** A request that is answered with success, as documented. */
  async ask(...question: Question): Promise<Json> {
    const { status, json, text } = await this.#send(question);
    if (status >= 300) {
      throw new Error(
        `${question[0]} ${question[1]} answered ${status}: ${text}`,
      );
    }
    return json;
  }

  get(path: string, key?: string): Promise<Json> {
    return this.ask("GET", path, undefined, key);
  }

  post(path: string, body: unknown, key?: string): Promise<Json> {
    return this.ask("POST", path, body, key);
  }

  /** A request that is rejected, as documented; returns the status. */
  async refused(...question: Question): Promise<number> {
    const { status, text } = await this.#send(question);
    if (status < 400) {
      throw new Error(
        `${question[0]} ${question[1]} answered ${status}: ${text}`,
      );
    }
    return status;
  }

  async stop(): Promise<void> {
    await this.gateway.stop();
    await this.redis?.remove();
  }

  async #send([method, path, body, key]: Question) {
    const { status, headers, json, text } = await this.gateway.request(
      method,
      path,
      body,
      key,
    );
    const [contentType = ""] = (headers.get("content-type") ?? "").split(";");
    const [template, operation] = operationOf(this.document, method, path);
    const documented =
      operation.responses[status] === undefined ? "default" : status;
    const answer: unknown =
      contentType === "application/json" ? JSON.parse(text) : text;
    // Without content, the status is all that is documented.
    const validate =
      operation.responses[documented]?.content === undefined
        ? null
        : this.#validatorOf(method, template, documented, contentType);
    if (validate === null ? text !== "" : !validate(answer)) {
      throw new Error(
        `${method} ${path} answered ${text.slice(0, 2_000)}, which is not as documented: ${this.#ajv.errorsText(validate?.errors)}`,
      );
    }
    if (status === 500) {
      throw new Error(`${method} ${path} failed: ${text.slice(0, 2_000)}`);
    }
    if (status < 300) {
      this.answered.add(`${method} ${template}`);
    }
    return { status, json, text };
  }

  #validatorOf(
    method: string,
    template: string,
    status: string | number,
    contentType: string,
  ): ValidateFunction {
    const escaped = template.replaceAll("~", "~0").replaceAll("/", "~1");
    const pointer = `document#/paths/${encodeURIComponent(escaped)}/${method.toLowerCase()}/responses/${status}/content/${contentType.replaceAll("/", "~1")}/schema`;
    const found = this.#ajv.getSchema(pointer);
    if (found === undefined) {
      throw new Error(`no schema at ${pointer}`);
    }
    return found;
  }
}

export async function startDocumentFixture(): Promise<DocumentFixture> {
  const redis = hasRedisServer() ? await startRedis() : null;
  const gateway = await startAdminFixture(
    `proxy_settings: { cache: true, cache_params: { type: redis }, callbacks: [prometheus] }
guardrails:
  - guardrail_name: no-secrets
    litellm_params: { guardrail: hide-secrets, mode: pre_call }
`,
    redis === null
      ? {}
      : { REDIS_HOST: "127.0.0.1", REDIS_PORT: String(redis.port) },
  );
  const document = await gateway.get("/openapi.json", "");
  return new DocumentFixture(
    gateway,
    document as unknown as OpenApiDocument,
    redis,
  );
}

/** The document allows answers further fields; here each must be documented. */
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
