import type { FastifyRequest } from "fastify";
import type { z } from "zod";
import { isRecord } from "../../core/json.ts";
import { faultOfName } from "../ledger/names.ts";
import { CallError, invalidParam } from "../http/errors.ts";

/** The model that a request names, in its body or (Azure-style clients) in its path; checked first. */
export function modelOf(request: FastifyRequest): string {
  const { body } = request;
  if (!isRecord(body)) {
    const form = request.routeOptions.config.takesFiles === true;
    throw new CallError(
      "invalid_request",
      `The body must be ${form ? "a form (multipart/form-data)" : "a JSON object"}.`,
    );
  }
  const { deployment } = request.params as { deployment?: string };
  if (deployment !== undefined) {
    Object.assign(body, { model: deployment });
  }
  const { model } = body;
  const named = typeof model === "string" && model !== "" ? model : null;
  const fault =
    named === null
      ? model === undefined
        ? "is required"
        : "must be a string"
      : faultOfName(named);
  if (named !== null && fault === null) {
    return named;
  }
  throw invalidParam(
    "model",
    `${fault}. Call \`/v1/models\` to see the models that this key may use.`,
  );
}

/** A body of the expected shape; throws one sentence that names the first invalid field. */
export function validateBody<Schema extends z.ZodType>(
  schema: Schema,
  body: unknown,
): z.output<Schema> {
  const result = schema.safeParse(body);
  if (result.success) {
    return result.data;
  }
  throw invalidField(result.error);
}

/** The first mistake as a sentence: `messages[0].role` must be …. */
export function invalidField(error: z.ZodError): CallError {
  const [issue] = error.issues;
  const field = (issue?.path ?? []).reduce<string>(
    (path, part) =>
      typeof part === "number"
        ? `${path}[${part}]`
        : path === ""
          ? String(part)
          : `${path}.${String(part)}`,
    "",
  );
  const where = field === "" ? "The body" : `\`${field}\``;
  return new CallError("invalid_request", `${where} ${mistake(issue)}.`, {
    param: field,
  });
}

const KINDS: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "true or false",
  int: "a whole number",
  number: "a number",
  object: "an object",
  record: "an object",
  string: "a string",
};
const WRONG_TYPE = /^Invalid input: expected (\w+), received (\w+)$/;

/** Zod's message for a value that a list does not contain. */
const ONE_OF = /^Invalid option: /;

/** The text after a field's name: the schema's own message, such as `must be …`, or Zod's for a wrong type or a limit in plain words. */
function mistake(issue: z.core.$ZodIssue | undefined): string {
  const [, expected = "", received] =
    WRONG_TYPE.exec(issue?.message ?? "") ?? [];
  const kind = KINDS[expected];
  if (issue?.code === "invalid_value" && ONE_OF.test(issue.message)) {
    return `must be one of ${issue.values.join(", ")}`;
  }
  if (kind === undefined) {
    const message = limitInWords(issue?.message ?? "wrong type");
    return /^(must|has|is) /.test(message) ? message : `is invalid: ${message}`;
  }
  if (received === "undefined") {
    return `is required and must be ${kind}`;
  }
  // Also a parameter of a query that is given twice.
  return received === "array"
    ? `must be ${kind}, not a list`
    : `must be ${kind}`;
}

/** "Too small: expected array to have >=1 items" */
const LIMIT =
  /^Too (?:small|big): expected \w+ to (be|have) ([<>]=?)(\S+)( \w+)?$/;
const BOUNDS: Readonly<Record<string, string>> = {
  ">": "more than",
  ">=": "at least",
  "<": "less than",
  "<=": "at most",
};

/** Zod's message for a limit in plain words, such as `must have at least 1 item`; others as they are. */
function limitInWords(message: string): string {
  return message.replace(
    LIMIT,
    (_, verb: string, sign: string, limit: string, unit: string = "") =>
      `must ${verb} ${BOUNDS[sign]} ${limit}${limit === "1" ? unit.replace(/s$/, "") : unit}`,
  );
}
