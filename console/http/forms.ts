import type { FastifyInstance, FastifyRequest } from "fastify";
import type { z } from "zod";
import { Failure } from "../../core/failure.ts";

/** In bytes: enough for a list of some hundred names. */
const MAX_FORM = 65_536;

/** The fields of a form: a text each, a list for repeated fields. */
export type Fields = Readonly<Record<string, string | readonly string[]>>;

export const FORM_TYPE = "application/x-www-form-urlencoded";

type ReadForm<T> =
  | { readonly kind: "read"; readonly value: T }
  | {
      readonly kind: "mistakes";
      /** One sentence per field. */
      readonly mistakes: Readonly<Record<string, string>>;
      /** To be shown again. */
      readonly typed: Fields;
    };

export function acceptForms(server: FastifyInstance): void {
  server.addContentTypeParser(
    FORM_TYPE,
    { parseAs: "string", bodyLimit: MAX_FORM },
    (_request, body, done) => done(null, fieldsOf(String(body))),
  );
}

/** In one pass: anybody may send a form with thousands of fields. */
export function fieldsOf(text: string): Fields {
  const sent = Map.groupBy(new URLSearchParams(text), ([name]) => name);
  return Object.fromEntries(
    [...sent].map(([name, pairs]) => {
      const values = pairs.map(([, value]) => value);
      return [name, values.length === 1 ? (values[0] ?? "") : values];
    }),
  );
}

/** The values of a form, or its mistakes by field. Empty fields count as missing. */
export function readForm<T extends z.ZodType>(
  request: FastifyRequest,
  schema: T,
): ReadForm<z.output<T>> {
  return readFields(request.body, schema);
}

/** Reads fields from another source, such as a query. */
export function readFields<T extends z.ZodType>(
  sent: unknown,
  schema: T,
): ReadForm<z.output<T>> {
  const typed = (sent ?? {}) as Fields;
  const filled = Object.fromEntries(
    Object.entries(typed).filter(([, value]) => value !== ""),
  );
  const parsed = schema.safeParse(filled);
  if (parsed.success) {
    return { kind: "read", value: parsed.data };
  }
  const mistakes: Record<string, string> = {};
  for (const { path, message } of parsed.error.issues) {
    mistakes[String(path[0] ?? "form")] ??= message;
  }
  return { kind: "mistakes", mistakes, typed };
}

/** The fields of a form; throws a Failure that names each mistake. */
export function needForm<T extends z.ZodType>(
  request: FastifyRequest,
  schema: T,
): z.output<T> {
  const form = readForm(request, schema);
  if (form.kind === "read") {
    return form.value;
  }
  throw new Failure(
    Object.entries(form.mistakes).map(
      ([field, mistake]) => `${field}: ${mistake}.`,
    ),
  );
}

/** Offset of a page in an address; 0 for anything else. */
export function offsetIn(from: string | undefined): number {
  return /^\d{1,6}$/.test(from ?? "") ? Number(from) : 0;
}
